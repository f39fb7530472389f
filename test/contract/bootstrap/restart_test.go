// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestContractRestart(t *testing.T) {
	t.Run("BOOT-54 a manager that starts anew writes nothing where nothing has changed", func(t *testing.T) {
		s, l := shared, newPublishedLab(t, "restart")
		g, ctx := NewWithT(t), t.Context()
		versions := func(g Gomega) map[string]string {
			found := map[string]string{}
			for _, config := range s.configs(ctx, g, s.installed.Namespace) {
				found[config.Name] = config.ResourceVersion
			}
			return found
		}
		before := versions(g)
		g.Expect(s.Bootstrap.Stop()).To(Succeed())
		l.disown(t, "m-0")
		g.Expect(s.Bootstrap.Start(ctx)).To(Succeed())
		// When it has repaired this one it looks at all others too, now or within moments.
		l.expectOwned(t)
		consistently(t, func(g Gomega) { g.Expect(versions(g)).To(Equal(before)) })
	})
}
