// Measures the page that it is in: see TestInBrowser. A text is what a text node shows, line by line.
(function () {
  const problem = [];
  const report = (text) => { if (problem.length < 20) problem.push(text); };
  const short = (node) => JSON.stringify(node.textContent.trim().slice(0, 60));
  // All that folds is unfolded, but for most of many Machines.
  document.querySelectorAll("details").forEach((details, i) => { details.open = !details.id || i < 12; });
  if (document.documentElement.scrollWidth > window.innerWidth) {
    report("the page is wider than the screen: " + document.documentElement.scrollWidth);
  }
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest("script, style, title") || !parent.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      checkClipped(node, parent, box);
      boxes.push({ node, left: box.left, right: box.right, top: box.top, bottom: box.bottom, mark: parent.classList.contains("mark") });
    }
  }
  function checkClipped(node, parent, box) {
    for (let outer = parent; outer && outer !== document.body; outer = outer.parentElement) {
      const style = getComputedStyle(outer), frame = outer.getBoundingClientRect();
      // What scrolls can be read, and so can what is on no screen yet.
      const clips = ["hidden", "clip"].includes(style.overflowX) && outer.tagName !== "svg";
      if (clips && (box.right > frame.right + 1 || box.left < frame.left - 1)) report(short(node) + " is cut off");
      if (["auto", "scroll"].includes(style.overflowX)) return;
    }
    if (box.right > window.innerWidth + 1 || box.left < -1) report(short(node) + " is cut off at the side of the screen");
  }
  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - 2.5; j++) {
      const a = boxes[i], b = boxes[j];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - b.top;
      // Faults of one time have their marks on one place; each says what it is.
      if (across > 1 && down > 2.5 && !(a.mark && b.mark) && a.node !== b.node) report(short(a.node) + " lies on " + short(b.node));
    }
  }
  for (const label of document.querySelectorAll("svg text:not(.mark)")) {
    const text = label.getBoundingClientRect(), room = label.previousElementSibling.getBoundingClientRect();
    if (text.width > 0 && (text.left < room.left - 1 || text.right > room.right + 1)) report(short(label) + " has no room");
  }
  const out = document.createElement("pre");
  out.id = "measured";
  out.textContent = JSON.stringify({ Texts: boxes.length, Problem: problem });
  document.body.append(out);
})();
