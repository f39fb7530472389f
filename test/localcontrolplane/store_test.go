// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestOwnersAreStoredFirst would be flaky with a real garbage collector: what it deletes depends on how fast the objects follow each other.
func TestOwnersAreStoredFirst(t *testing.T) {
	g := NewWithT(t)
	generations, err := ownersFirst([]StoredObject{
		owned("secret", "config", "machine"), owned("machine", "cluster"), owned("cluster"), owned("config", "machine", "elsewhere"),
		owned("alone"), owned("circle", "circle"),
	})
	g.Expect(err).NotTo(HaveOccurred())
	var names [][]string
	for _, generation := range generations {
		var of []string
		for _, o := range generation {
			of = append(of, o.Name)
		}
		names = append(names, of)
	}
	g.Expect(names).To(Equal([][]string{{"cluster", "alone"}, {"machine", "circle"}, {"config"}, {"secret"}}))

	_, err = ownersFirst([]StoredObject{{Resource: "secrets", Namespace: "default", Name: "broken", Data: []byte("{")}})
	g.Expect(err).To(MatchError(ContainSubstring("secrets/default/broken")))
}

// owned is an object whose UID is its name, and those of its owners.
func owned(name string, owners ...string) StoredObject {
	var references []string
	for _, owner := range owners {
		references = append(references, fmt.Sprintf(`{"uid": %q}`, owner))
	}
	return StoredObject{Name: name, Data: fmt.Appendf(nil,
		`{"metadata": {"uid": %q, "ownerReferences": [%s]}}`, name, strings.Join(references, ","))}
}
