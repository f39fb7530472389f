// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// convertedMachine is the recording that the conversion is held to.
const convertedMachine = "full-metal3machine-running-as-v1beta1"

// notReplayed are the recordings of the real managers that no test uses, with the reason. They are not in testdata.
func notReplayed() map[string]string {
	return map[string]string{
		"g-pinning-and-odd-cases":                           "hosts and provider IDs that were chosen by hand, which the providers never do",
		"h-datatemplate-window-and-worker-deletion":         "Metal3DataTemplate is not simulated",
		"i-worker-deletion-with-control-plane-and-dead-api": "Cluster API core drains and deletes the Node, not Metal3",
		"j-userdata-precedence":                             "a Metal3Machine's own user data, which no template sets",
		"full-baremetalhost-running":                        "one state of an object whose changes are replayed",
		"full-cluster-running":                              "one state of an object whose changes are replayed",
		"full-machine-running":                              "one state of an object whose changes are replayed",
		"full-metal3cluster-running":                        "one state of an object whose changes are replayed",
		"full-metal3machine-running":                        "the same as " + convertedMachine + " in the other API version",
		"full-node-running":                                 "one state of an object whose changes are replayed",
	}
}

// TestRecordings: every recording of testdata is used, and every other one is known to be left out.
func TestRecordings(t *testing.T) {
	g := NewWithT(t)
	files, err := os.ReadDir("testdata")
	g.Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, file := range files {
		found = append(found, strings.TrimSuffix(file.Name(), filepath.Ext(file.Name())))
	}
	used := []string{convertedMachine, admissionCases}
	for _, scenario := range scenarios() {
		used = append(used, scenario.file)
	}
	g.Expect(found).To(ConsistOf(used))
	for _, name := range used {
		g.Expect(notReplayed()).NotTo(HaveKey(name))
	}
	for name, reason := range notReplayed() {
		g.Expect(reason).NotTo(BeEmpty(), name)
	}
}
