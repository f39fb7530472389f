// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capi-openshift/agent-providers/test/sandbox"
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
		restart := func() {
			g.Expect(s.Bootstrap.Stop()).To(Succeed())
			l.disown(t, "m-0")
			g.Expect(s.Bootstrap.Start(ctx)).To(Succeed())
			l.expectOwned(t)
			all := s.configs(ctx, g, metav1.NamespaceAll)
			g.Expect(s.AwaitPasses(ctx, s.Bootstrap, sandbox.BootstrapPasses(len(all)))).To(Succeed())
		}
		// After the first time nothing is left to do of what went before, whatever that was.
		restart()
		before := versions(g)
		restart()
		g.Expect(versions(g)).To(Equal(before))
	})
}
