// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// conformance says for every recording what happens to the model before which of its commands, by their number. Nothing has a
// Node there, because the recorded clusters had no operator.
var conformance = map[string]map[int]func(*world){
	"healthy": {},
	"usage":   {},
	"learner-not-started": {0: func(w *world) {
		w.joins(true)
	}},
	"learner": {0: func(w *world) {
		w.joins(true)
		w.machines["d"].installed = w.latest
		w.ticks(2)
	}},
	"one-down":       {0: func(w *world) { w.off("c"); w.ticks(1) }},
	"just-back":      {0: justBack, 1: oneTick, 2: oneTick, 3: oneTick},
	"leader-removed": {},
	"voter-not-started": {0: func(w *world) {
		w.joins(false)
	}},
	"not-enough-started": {0: func(w *world) {
		w.remove(w.idOf("c"))
		w.joins(false)
	}},
	"no-quorum":    {0: func(w *world) { w.off("b", "c"); w.ticks(1) }},
	"nothing-runs": {0: func(w *world) { w.off("a", "b", "c"); w.ticks(1) }},
}

func oneTick(w *world) { w.ticks(1) }

// justBack is a member that has been back for less than etcd's health interval.
func justBack(w *world) {
	w.off("c")
	w.ticks(1)
	w.on("c")
	w.clock = w.clock.Add(time.Second)
	w.Tick(w.clock, w.all())
}

// joins adds d as a member that has not started, by hand.
func (w *world) joins(learner bool) {
	w.add("d")
	w.change("d", func(host *Host) { host.Node = false })
	w.ticks(1)
	w.insert(&member{id: w.newID(), address: w.hosts["d"].Address, learner: learner})
}

// recording is one command of a recording.
type recording struct {
	args, endpoints []string
	exit            int
	stdout, stderr  string
}

// TestConformance plays the recordings of the real etcdctl: the model prints the same words and the same JSON, and ends with the
// same exit codes.
func TestConformance(t *testing.T) {
	recordings, ids := readRecordings(t)
	NewWithT(t).Expect(slices.Sorted(maps.Keys(recordings))).To(Equal(slices.Sorted(maps.Keys(conformance))))
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		t.Run(name, func(t *testing.T) {
			before := conformance[name]
			w := newWorld(t, Options{}, "a", "b", "c")
			for _, host := range []string{"a", "b", "c"} {
				w.change(host, func(host *Host) { host.Node = false })
			}
			w.ticks(1)
			w.leader = w.idOf("a")
			own := map[string]string{}
			for number, recorded := range recordings[name] {
				if change := before[number]; change != nil {
					change(w)
				}
				w.learn(own)
				got := w.etcdctl(recorded.endpoints, translate(recorded.args, ids, own))
				about := fmt.Sprintf("command %d: %s", number, strings.Join(recorded.args, " "))
				w.g.Expect(got.ExitCode).To(Equal(recorded.exit), about+"\n"+got.Stderr)
				w.g.Expect(normal(got.Stdout, own)).To(Equal(normal(recorded.stdout, ids)), about)
				w.g.Expect(normalErrors(got.Stderr, own)).To(Equal(normalErrors(recorded.stderr, ids)), about)
			}
		})
	}
}

// learn adds the ids of the model to the table, by which both sides become comparable: id to the host's name.
func (w *world) learn(ids map[string]string) {
	for _, m := range w.members {
		note(ids, m.id, w.hostAt(m.address))
	}
	note(ids, w.id, "cluster")
}

func note(ids map[string]string, id uint64, name string) {
	ids[strconv.FormatUint(id, 10)] = name
	ids[hexID(id)] = name
}

// translate puts the model's id of a host in the place of the recorded one.
func translate(args []string, recorded, own map[string]string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		for id, name := range own {
			if recorded[arg] == name && strings.ContainsAny(id, "abcdef") {
				out[i] = id
			}
		}
	}
	return out
}

func readRecordings(t *testing.T) (recordings map[string][]recording, ids map[string]string) {
	t.Helper()
	g := NewWithT(t)
	paths, err := filepath.Glob(filepath.Join("testdata", "etcdctl", "*.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	recordings, ids = map[string][]recording{}, map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		for _, section := range strings.Split(string(content), "## etcdctl")[1:] {
			recordings[name] = append(recordings[name], readRecording(g, section))
			readIDs(section, ids)
		}
	}
	return recordings, ids
}

func readRecording(g Gomega, section string) recording {
	lines := strings.Split(strings.ReplaceAll(section, "http://", "https://"), "\n")
	out := recording{args: strings.Fields(lines[0])}
	for _, line := range lines[1:] {
		kind, text, _ := strings.Cut(line, ":")
		text = strings.TrimPrefix(text, " ")
		switch kind {
		case "endpoints":
			out.endpoints = strings.Split(text, ",")
		case "exit":
			var err error
			out.exit, err = strconv.Atoi(text)
			g.Expect(err).NotTo(HaveOccurred())
		case "stdout":
			out.stdout += text + "\n"
		case "stderr":
			out.stderr += text + "\n"
		}
	}
	return out
}

var (
	listedMember  = regexp.MustCompile(`\{"ID":(\d+),("name":"\w+",)?"peerURLs":\["http://127\.91\.0\.(\d)`)
	listedCluster = regexp.MustCompile(`"cluster_id":(\d+)`)
)

// readIDs finds out whose the ids of a recording are: the last number of the address says which host.
func readIDs(section string, ids map[string]string) {
	add := func(text, name string) {
		if id, err := strconv.ParseUint(text, 10, 64); err == nil {
			note(ids, id, name)
		}
	}
	for _, match := range listedMember.FindAllStringSubmatch(section, -1) {
		add(match[1], string('a'+match[3][0]-'1'))
	}
	for _, match := range listedCluster.FindAllStringSubmatch(section, -1) {
		add(match[1], "cluster")
	}
}

// slowTransfer is what etcdctl says instead of the end of its time when the server gives up a moment earlier.
const slowTransfer = "etcdserver: request timed out, leader transfer took too long"

var word = regexp.MustCompile(`\w+`)

// normal makes output comparable: ids become names, numbers that differ from run to run go, JSON is sorted.
func normal(text string, ids map[string]string) string {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil || !strings.ContainsAny(text, "[{") {
		text = word.ReplaceAllStringFunc(text, func(word string) string {
			if name, known := ids[word]; known {
				return "<" + name + ">"
			}
			return word
		})
		lines := strings.Split(strings.ReplaceAll(text, "  <", " <"), "\n")
		if strings.Contains(text, "started, ") {
			slices.Sort(lines)
		}
		return strings.Join(lines, "\n")
	}
	out, err := json.MarshalIndent(normalJSON("", value, ids), "", " ")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// changing are numbers that are of no interest.
var changing = []string{
	"raft_term", "raftTerm", "raftIndex", "raftAppliedIndex", "revision", "dbSize", "dbSizeInUse", "dbSizeQuota", "member_id",
}

func normalJSON(key string, value any, ids map[string]string) any {
	switch value := value.(type) {
	case json.Number:
		if name, known := ids[value.String()]; known && key != "member_id" {
			return "<" + name + ">"
		}
		if slices.Contains(changing, key) {
			return "<" + key + ">"
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			value[name] = normalJSON(name, value[name], ids)
		}
	case []any:
		for i := range value {
			value[i] = normalJSON("", value[i], ids)
		}
		slices.SortFunc(value, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return value
}

// normalErrors makes stderr comparable. Of the lines of the client's log the last counts: which call failed, and with which code
// and text. What it says when the time is over depends on where that happened.
func normalErrors(text string, ids map[string]string) string {
	text = strings.ReplaceAll(text, slowTransfer, textDeadline)
	text = strings.ReplaceAll(text, `code = Unknown desc = `+textDeadline, "code = "+codeDeadline)
	text = strings.ReplaceAll(text, "Error: rpc error: code = "+codeDeadline, "Error: "+textDeadline)
	var out []string
	last := ""
	for _, line := range strings.Split(text, "\n") {
		var entry struct{ Level, Msg, Method, Error string }
		if json.Unmarshal([]byte(line), &entry) != nil {
			out = append(out, normal(line, ids))
			continue
		}
		what, _, _ := strings.Cut(entry.Error, " desc = ")
		if !strings.Contains(what, codeDeadline) {
			what = entry.Error
		}
		last = strings.Join([]string{entry.Level, entry.Msg, entry.Method, what}, ", ")
	}
	if !strings.Contains(text, "Error: ") && !strings.Contains(text, "Failed to ") {
		return "" // A try that failed before another one succeeded.
	}
	return last + "\n" + strings.Join(out, "\n")
}
