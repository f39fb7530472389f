// SPDX-License-Identifier: Apache-2.0

//go:build browser

package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// measureScript writes what it measures into the page.
//
//go:embed testdata/measure.js
var measureScript string

// measured is what the script finds on a page.
type measured struct {
	Texts   int
	Problem []string
}

var (
	policy   = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	findings = regexp.MustCompile(`(?s)<pre id="measured">(.*?)</pre>`)
)

// TestInBrowser opens the pages of 1, 6 and 200 Machines in Chromium on a wide and on a narrow screen: nothing is wider than the screen, no
// text is cut off, and none lies on another. It leaves pictures in out/ for people. Run it with make test-report.
func TestInBrowser(t *testing.T) {
	out, err := filepath.Abs(filepath.Join("..", "..", "out"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(os.MkdirAll(out, 0o755)).To(Succeed())
	for name, in := range samples() {
		for screen, size := range map[string]string{"wide": "1400,1600", "middle": "1000,1600", "narrow": "520,1600"} {
			t.Run(name+" "+screen, func(t *testing.T) {
				g := NewWithT(t)
				page := render(g, in)
				file := filepath.Join(out, fmt.Sprintf("report-%s-machines.html", name))
				g.Expect(os.WriteFile(file, []byte(page), 0o600)).To(Succeed())
				picture := strings.TrimSuffix(file, ".html") + "-" + screen + ".png"
				chromium(t, "--window-size="+size, "--screenshot="+picture, "file://"+file)
				picked, err := os.Stat(picture)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(picked.Size()).To(BeNumerically(">", 20_000), "the picture is empty")
				result := measure(t, page, size)
				g.Expect(result.Problem).To(BeEmpty())
				g.Expect(result.Texts).To(BeNumerically(">", 50))
			})
		}
	}
}

// TestMeasureFindsProblems: the script sees what it is to see.
func TestMeasureFindsProblems(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"overlap":  {`<p style="margin:0">one two three</p><p style="margin:-10px 0 0">four five six</p>`, "lies on"},
		"clipped":  {`<p style="width:40px;overflow:hidden;white-space:nowrap">a rather long text</p>`, "is cut off"},
		"too wide": {`<p style="width:3000px;background:red">text</p>`, "wider than the screen"},
		"label": {
			`<svg width="300" height="30"><rect width="10" height="30"/><text x="0" y="20" class="t1">far too long</text></svg>`, "has no room",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := measure(t, "<!doctype html><html><body>"+test.body+"</body></html>", "1400,1600")
			NewWithT(t).Expect(result.Problem).To(ContainElement(ContainSubstring(test.want)))
		})
	}
}

// measure opens a page with the script, which the page's own policy would forbid.
func measure(t *testing.T, page, size string) measured {
	t.Helper()
	g := NewWithT(t)
	page = policy.ReplaceAllString(page, "")
	page = strings.Replace(page, "</body>", "<script>"+measureScript+"</script></body>", 1)
	file := filepath.Join(t.TempDir(), "page.html")
	g.Expect(os.WriteFile(file, []byte(page), 0o600)).To(Succeed())
	found := findings.FindSubmatch(chromium(t, "--window-size="+size, "--dump-dom", "file://"+file))
	g.Expect(found).NotTo(BeNil(), "the script has not run")
	var result measured
	g.Expect(json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &result)).To(Succeed())
	return result
}

func chromium(t *testing.T, arguments ...string) []byte {
	t.Helper()
	arguments = append([]string{"--headless", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir()}, arguments...)
	if os.Geteuid() == 0 {
		// It refuses to sandbox for root; the page is our own, and has no scripts but ours.
		arguments = append([]string{"--no-sandbox"}, arguments...)
	}
	command := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("CHROMIUM"), "chromium"), arguments...)
	var problems bytes.Buffer
	command.Stderr = &problems
	page, err := command.Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), problems.String())
	return page
}
