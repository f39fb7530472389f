// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

// aliases is a kubeconfig of n KiB that becomes 1,000 times as large when its aliases are followed.
func aliases(n int) string {
	return "x: &a \"" + strings.Repeat("a", n<<10) + "\"\napiVersion: v1\nkind: Config\nextensions: [" + strings.Repeat("*a,", 1000) + "]\n"
}

func FuzzRewriteKubeconfig(f *testing.F) {
	for _, seed := range []string{
		aliases(1), "clusters: [{name: a, cluster: {server: 'https://a'}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
			"current-context: a\nusers: [{name: a, user: {token: b}}]", "{}", "current-context: [", "apiVersion: v2\nkind: Config",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		untrustedtest.Bounded(t, func() { _, _ = RewriteKubeconfig(source, "192.0.2.1", "192.0.2.1:6443", "api.a.example.com") })
	})
}

// Whoever may create Secrets in the namespace of a Cluster chooses these bytes.
func TestHugeKubeconfigs(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"900 KiB with aliases": {source: aliases(900), want: "no more than 131072 bytes are read"},
		"100 KiB with aliases": {source: aliases(100), want: "YAML alias"},
		"many values":          {source: "users: [" + strings.Repeat("{},", 10_000) + "]", want: "more than 1000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			untrustedtest.Bounded(t, func() {
				_, err := RewriteKubeconfig([]byte(test.source), "a", "a:6443", "a")
				NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("the kubeconfig cannot be parsed"), ContainSubstring(test.want))))
			})
		})
	}
}

func FuzzOverrideProblems(f *testing.F) {
	for _, seed := range []string{
		`{"controlPlane":{"replicas":3}}`, `{"FIPS":true}`, `[1]`, strings.Repeat(`{"a":`, 100), `{"publish":"Internal","x":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		untrustedtest.Bounded(t, func() {
			spec := controlplanev1.OpenshiftAssistedControlPlaneSpec{DistributionVersion: "4.20.0"}
			spec.Install.ConfigOverrides.Raw = raw
			problems := OverrideProblems(spec.Install, field.NewPath("spec"))
			value, err := InstallConfigOverrides(spec)
			if len(problems) == 0 && err != nil && len(raw) > 0 {
				t.Errorf("admission lets pass what cannot be rendered: %v", err)
			}
			if len(value) > 8*overridesLimits.Bytes {
				t.Errorf("the annotation has %d bytes", len(value))
			}
		})
	})
}

// FuzzTemplateKeys is for the annotation that tells which labels and annotations came from a template, which anybody may have changed.
func FuzzTemplateKeys(f *testing.F) {
	for _, seed := range []string{`{"labels":["a"],"annotations":["b"]}`, "{", "null", strings.Repeat("[", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		untrustedtest.Bounded(t, func() {
			cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
			cp.Annotations = map[string]string{controlplanev1.TemplateKeysAnnotation: value}
			_ = MachineObjects{ControlPlane: cp}.MetadataPatch(cp)
		})
	})
}
