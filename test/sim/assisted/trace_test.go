// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// change is one field of one object that took a new value. Changes of one group were seen at once: their order among
// each other means nothing.
type change struct {
	group  int
	at     float64
	object string
	field  string
	value  string
}

func (c change) String() string { return fmt.Sprintf("%s %s = %s", c.object, c.field, c.value) }

var (
	traceLine      = regexp.MustCompile(`^\s*([\d.]+) (\S+) (\S+)(?: = (.*))?$`)
	traceCondition = regexp.MustCompile(`^\('(\w+)', '([^']*)', ['"](.*)['"]\)$`)
	traceProgress  = regexp.MustCompile(`^\((?:'([^']*)'|None), (?:'[^']*'|None), (\d+|None)\)$`)
)

// comparedFields are the fields of a recording that a simulator must reproduce. The others are of no interest to a
// client (URLs, identifiers) or belong to the recording's driver (spec).
var comparedFields = map[string]bool{
	"debugInfo.state": true, "debugInfo.stateInfo": true, "bootstrap": true, "kind": true, "role": true, "progress": true,
	"deleting": true, "DELETED": true,
}

// readTrace reads a recording of testdata, as far as its fields are compared. rename maps the recording's names of Agents
// to the hosts of the test; a host that is not in it is left out.
func readTrace(t *testing.T, file string, rename map[string]string) []change {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	must(t, err)
	defer func() { must(t, f.Close()) }()
	var out []change
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		match := traceLine.FindStringSubmatch(scanner.Text())
		if match == nil {
			t.Fatalf("%s: cannot read the line %q", file, scanner.Text())
		}
		object, ok := traceObject(match[2], rename)
		value, compared := traceValue(match[3], match[4])
		if !ok || !compared {
			continue
		}
		at, err := strconv.ParseFloat(match[1], 64)
		must(t, err)
		out = append(out, change{group: int(at * 10), at: at, object: object, field: match[3], value: value})
	}
	must(t, scanner.Err())
	return out
}

func traceObject(name string, rename map[string]string) (string, bool) {
	kind, id, _ := strings.Cut(name, "/")
	if kind != "agent" {
		return name, kind == "aci" || kind == "infraenv" || kind == "cd"
	}
	for prefix, host := range rename {
		if strings.HasPrefix(id, prefix) {
			return "agent/" + host, true
		}
	}
	return "", false
}

// traceValue brings a recorded value into the form of the recorder. ok is false for fields that are not compared.
func traceValue(field, raw string) (value string, ok bool) {
	switch {
	case strings.HasPrefix(field, "cond."):
		match := traceCondition.FindStringSubmatch(raw)
		if match == nil {
			return raw, true
		}
		return match[1] + " " + match[2] + " " + comparableMessage(match[2], match[3]), true
	case field == "progress":
		match := traceProgress.FindStringSubmatch(raw)
		if match == nil || match[1] == "" {
			return "", false
		}
		return match[1] + " " + match[2], true
	case field == "debugInfo.stateInfo":
		return comparableInfo(raw), true
	}
	return raw, comparedFields[field]
}

// identifier is a backend's UUID in a message, which is another one in every run.
var identifier = regexp.MustCompile(`\[[0-9a-f-]{36}\]`)

// comparableMessage keeps what never differs between two runs: of lists of failing checks, and of errors of a connection, what they begin
// with.
func comparableMessage(reason, message string) string {
	switch reason {
	case "BackendError":
		return backendMessage(message)
	case "ValidationsFailing", "ValidationsUserPending", "CleanupFailed", "ImageCreationError", "MissingClusterDeployment":
		message, _, _ = strings.Cut(message, ": ")
	}
	return comparableInfo(identifier.ReplaceAllString(message, "[id]"))
}

// backendMessage tells the service's own failures apart.
func backendMessage(message string) string {
	for text, short := range map[string]string{
		"unexpected end of JSON": "empty inventory", "Operation cannot be fulfilled": "chance", "Failed to get cluster": "chance",
		"no condition found": "bound too early",
	} {
		if strings.Contains(message, text) {
			return short
		}
	}
	return ""
}

// comparableInfo cuts a message where the recorder cut it at the latest, and drops lists of failing checks: they depend on
// how many of them the simulator has.
func comparableInfo(text string) string {
	if before, _, found := strings.Cut(text, "failing validation(s): "); found {
		text = before
	}
	const cut = 100
	return strings.TrimSpace(text[:min(cut, len(text))])
}

// difference is something that the simulator does otherwise than a recording, and why that is right.
type difference struct {
	// object and field are matched as prefixes, value as a substring; an empty one matches everything.
	object, field, value string
	reason               string
}

func (d difference) covers(c change) bool {
	return strings.HasPrefix(c.object, d.object) && strings.HasPrefix(c.field, d.field) && strings.Contains(c.value, d.value)
}

// chance is what both show only by chance: conflicts between the service's own writes, and a reconcile that just finds a
// deleted cluster gone.
var chance = difference{field: "cond.SpecSynced", value: "False BackendError chance"}

// samplingDifferences are those that every recording has: it was taken about three times a second, so that what lasted
// less is not in it, and it starts with what was there already.
var samplingDifferences = []difference{
	chance,
	{field: "debugInfo.stateInfo", value: "Host cannot be installed", reason: "which checks fail first depends on the hosts"},
}

// mostMissing is the share of a recording's changes that may be missing for reasons that are given.
const mostMissing = 0.03

// compareTrace checks that the simulator did what a recording shows, in the same order for each object. Missing and
// additional changes must be explained.
func compareTrace(t *testing.T, recorded, simulated []change, missing, additional []difference) {
	t.Helper()
	found := 0
	for _, object := range objectsOf(recorded) {
		matched, ok := matchObject(t, object, recorded, simulated, append(slices.Clone(samplingDifferences), missing...))
		if !ok {
			return
		}
		found += len(matched)
		for i, c := range simulated {
			if c.object != object || matched[i] || repeats(simulated, i) {
				continue
			}
			if !covered(c, append(slices.Clone(samplingDifferences), additional...)) {
				t.Errorf("the simulator shows a change that is not in the recording: %s", c)
			}
		}
	}
	if share := float64(len(recorded)-found) / float64(len(recorded)); share > mostMissing {
		t.Errorf("the simulator does not show %d of %d recorded changes: more than %.0f %% are too many, with whatever reason",
			len(recorded)-found, len(recorded), 100*mostMissing)
	}
}

// compareFinal checks that every field that a recording has ends with the recorded value, or that a difference says why it does not.
func compareFinal(t *testing.T, recorded, simulated []change, differences []difference) {
	t.Helper()
	ends := map[string]string{}
	for _, c := range simulated {
		ends[c.object+" "+c.field] = c.value
	}
	last := map[string]change{}
	for _, c := range recorded {
		last[c.object+" "+c.field] = c
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		if want := last[key]; ends[key] != want.value && !covered(want, differences) {
			t.Errorf("the recording ends with %s, the simulator with %q", want, ends[key])
		}
	}
}

// matchObject finds every recorded change of an object among the simulated ones, and returns the indexes that it found. It
// stops at the first that is not there and has to be: what follows would be found in the wrong place.
func matchObject(t *testing.T, object string, recorded, simulated []change, missing []difference) (matched map[int]bool, ok bool) {
	t.Helper()
	matched = map[int]bool{}
	start, furthest, group := 0, 0, -1
	for _, want := range recorded {
		if want.object != object {
			continue
		}
		if want.group != group {
			start, group = groupStart(simulated, furthest), want.group
		}
		index := findChange(simulated, want, start, matched)
		switch {
		case index >= 0:
			matched[index] = true
			furthest = max(furthest, index)
		case !covered(want, missing):
			t.Errorf("at %.1f the recording shows %s, which the simulator does not do, or not in this order; it does:%s",
				want.at, want, following(simulated, object, start))
			return matched, false
		}
	}
	return matched, true
}

// following lists what the simulator did with an object from some change on, for messages.
func following(changes []change, object string, start int) string {
	var text strings.Builder
	for _, c := range changes[min(start, len(changes)):] {
		if c.object == object && text.Len() < 2000 {
			fmt.Fprintf(&text, "\n  %s = %s", c.field, c.value)
		}
	}
	return text.String()
}

// groupStart is the first change of the group that index is in.
func groupStart(changes []change, index int) int {
	for index > 0 && index < len(changes) && changes[index-1].group == changes[index].group {
		index--
	}
	return index
}

func findChange(simulated []change, want change, start int, matched map[int]bool) int {
	for i := start; i < len(simulated); i++ {
		c := simulated[i]
		if !matched[i] && c.object == want.object && c.field == want.field && c.value == want.value {
			return i
		}
	}
	return -1
}

// repeats says that a change restores the value which the field had before a change that the recorder missed.
func repeats(simulated []change, index int) bool {
	c := simulated[index]
	for i := index - 1; i >= 0; i-- {
		if simulated[i].object == c.object && simulated[i].field == c.field && simulated[i].value == c.value {
			return true
		}
	}
	return false
}

func covered(c change, differences []difference) bool {
	return slices.ContainsFunc(differences, func(d difference) bool { return d.covers(c) })
}

func objectsOf(changes []change) []string {
	var out []string
	for _, c := range changes {
		if !slices.Contains(out, c.object) {
			out = append(out, c.object)
		}
	}
	return out
}

// traceFiles are the names of all recordings.
func traceFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("testdata")
	must(t, err)
	var out []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".log" {
			out = append(out, entry.Name())
		}
	}
	return out
}
