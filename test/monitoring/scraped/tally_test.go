// SPDX-License-Identifier: Apache-2.0

package scraped

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTally: what is counted has the form of what is scraped, and each object has a past of its own.
func TestTally(t *testing.T) {
	g := NewWithT(t)
	tally := NewTally()
	look := tally.Seeing(func(o client.Object) {
		if was := tally.Was(o, "name", o.GetName()); was != "" && was != o.GetName() {
			tally.Count("renamed", o.GetNamespace(), was)
			tally.Count("seconds")
		}
		tally.Was(o, "kind", "Secret")
	})
	for _, o := range []metav1.ObjectMeta{
		{UID: "1", Namespace: "x", Name: "a"}, {UID: "2", Namespace: "x", Name: "b"}, {UID: "1", Namespace: "x", Name: "a"},
		{UID: "1", Namespace: "x", Name: "c"}, {UID: "2", Namespace: "x", Name: "c"}, {UID: "1", Namespace: "x", Name: "a"},
	} {
		look(&corev1.Secret{ObjectMeta: o})
	}
	renamed := tally.Values("renamed")
	g.Expect(renamed).To(Equal(map[string]float64{"x,a": 1, "x,b": 1, "x,c": 1}))
	g.Expect(tally.Values("seconds")).To(Equal(map[string]float64{"": 3}))
	g.Expect(tally.Values("other")).To(Equal(map[string]float64{}))
	renamed["x,a"] = 5
	g.Expect(tally.Values("renamed")).To(HaveKeyWithValue("x,a", 1.0), "others get copies")
}
