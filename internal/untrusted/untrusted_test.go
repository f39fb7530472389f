// SPDX-License-Identifier: Apache-2.0

package untrusted_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/untrusted"
	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

var small = untrusted.Limits{Bytes: 1 << 10, Values: 16}

func TestDocuments(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	many := "[" + strings.Repeat("0,", 20) + "0]"
	for name, test := range map[string]struct {
		document, json, yaml string
	}{
		"an object":                   {document: `{"a": [1, "two", null]}`},
		"nothing":                     {document: ``},
		"too large":                   {document: strings.Repeat(" ", 1025), json: "1024 bytes", yaml: "1024 bytes"},
		"too deep":                    {document: deep, json: "16 values", yaml: "16 values"},
		"too many values, not nested": {document: many, json: "16 values", yaml: "16 values"},
		"brackets in a string":        {document: `"` + strings.Repeat(`[,\"`, 100) + `"`},
		"a string without an end":     {document: `"[[[[[[[[[[[[[[[[[[[[[\`, yaml: "cannot be parsed"},
		"a backslash at the end":      {document: `["\\"` + strings.Repeat(",0", 20), json: "16 values", yaml: "cannot be parsed"},
		"an alias":                    {document: "a: &a [1]\nb: *a", yaml: "alias"},
		"an alias as a key":           {document: "a: &a x\n*a : 1", yaml: "alias"},
		"a merge of an alias":         {document: "a: &a {b: 1}\nc: {<<: *a}", yaml: "alias"},
		"an anchor alone":             {document: "a: &a [1]"},
		"what looks like one":         {document: "a: '*a'\nb: 2*a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			expect(g, small.JSON([]byte(test.document)), test.json)
			expect(g, small.YAML([]byte(test.document)), test.yaml)
		})
	}
}

// TestPieces: it does not matter into which pieces a document is cut.
func TestPieces(t *testing.T) {
	for document, want := range map[string]string{
		`{"a": "\\\"[,[,", "b": [1, 2]}`:         "",
		`{"items": [{}, {}, {}], "a": {"b": 1}}`: "",
		`{"items": [{}, {}, {}, {}]}`:            "more than 3 items",
		`{"items": [0,0,0,0]}`:                   "more than 3 items",
		`{"a": [[1,2,3,4,5]]}`:                   "",
		`["\\"` + strings.Repeat(`,"\\"`, 20):    "more than 16 values",
	} {
		for size := 1; size <= len(document); size++ {
			g, counter := NewWithT(t), untrusted.Limits{Values: 16, Items: 3}.Counter()
			var err error
			for at := 0; at < len(document) && err == nil; at += size {
				err = counter.Count([]byte(document[at:min(at+size, len(document))]))
			}
			expect(g, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	g := NewWithT(t)
	roomy := untrusted.Limits{Bytes: 1 << 10, Values: 1000}
	nested := func(depth int) []byte { return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)) }
	expect(g, roomy.JSON(nested(64)), "")
	expect(g, roomy.JSON(nested(65)), "64 deep")
	expect(g, roomy.YAML(nested(63)), "")
	expect(g, roomy.YAML(nested(66)), "64 deep")
}

func expect(g Gomega, err error, want string) {
	if want == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}
	g.Expect(err).To(MatchError(ContainSubstring(want)))
}

// What the check lets pass is as deep, and has as many values, as the check says.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\\\"]",{}]}`, `[[[[`, `"\`, strings.Repeat(`[{"a":`, 40), "[" + strings.Repeat("{},", 300)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		untrustedtest.Bounded(t, func() {
			if small.JSON(document) != nil {
				return
			}
			var parsed any
			if json.Unmarshal(document, &parsed) == nil && count(parsed) > 2*small.Values {
				t.Errorf("%d values passed", count(parsed))
			}
		})
	})
}

// count is the number of values in a document, without the keys of its objects.
func count(value any) int {
	sum := 1
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			sum += count(item)
		}
	case []any:
		for _, item := range v {
			sum += count(item)
		}
	}
	return sum
}

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"a: &a [1]\nb: [*a, *a]", "[[[[", "{a: {b: c}}", "? *x", "- - - -", "a: !!binary aGk=",
		"%YAML 1.1\n---\n<<: {a: b}"} {
		f.Add([]byte(seed))
	}
	limits := untrusted.Limits{Bytes: 64 << 10, Values: 10_000}
	f.Fuzz(func(t *testing.T, document []byte) {
		untrustedtest.Bounded(t, func() { _ = limits.YAML(document) })
	})
}
