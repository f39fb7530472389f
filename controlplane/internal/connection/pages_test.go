// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// TestPages: of a kind that is read page by page there may be more objects than one answer may have.
func TestPages(t *testing.T) {
	const objects = mostKept + 1 // One of them is not kept.
	g := NewWithT(t)
	a, w := newAPI(t), newWoken()
	a.set("ignored", "1")
	for i := range objects - 1 {
		a.set(fmt.Sprintf("c-%05d", i), "1")
	}
	watch := NewWatcher("configmaps", &corev1.ConfigMap{}, w, named)

	whole := connections(t, a, nil)
	whole.pass(t)
	g.Expect(whole.Watch(t.Context(), key, watch)).To(Succeed())
	g.Eventually(func() error {
		_, err := value(t.Context(), whole, "c-00000")
		return err
	}, limit).Should(MatchError(ContainSubstring("too large")))

	c := connections(t, a, nil)
	c.kinds[0].Page = objects / 2
	c.pass(t)
	g.Expect(c.Watch(t.Context(), key, watch)).To(Succeed())
	r, err := c.GetReader(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	list := &corev1.ConfigMapList{}
	g.Eventually(func() error { return r.List(t.Context(), list) }, limit).Should(Succeed(), "all pages are read in the time of a request")
	g.Expect(list.Items).To(HaveLen(objects-1), "all that is kept")
}
