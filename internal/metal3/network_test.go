// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func labelled(name string, labels map[string]string) bmov1alpha1.BareMetalHost {
	return bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: labels}}
}

// TestCandidates: the selector is that of Metal3, whose operators are written in any case (METAL3 M3-10).
func TestCandidates(t *testing.T) {
	hosts := []bmov1alpha1.BareMetalHost{
		labelled("a", map[string]string{"rack": "1", "disk": "ssd"}), labelled("b", map[string]string{"rack": "2"}), labelled("c", nil),
		labelled("going", map[string]string{"rack": "1"}), labelled("external", map[string]string{"rack": "1"}),
	}
	hosts[3].DeletionTimestamp = ptr.To(metav1.Now())
	hosts[4].Spec.ExternallyProvisioned = true
	expression := func(operator string, values ...any) map[string]any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": "rack", "operator": operator, "values": values}}}
	}
	tests := map[string]struct {
		selector map[string]any
		want     []string
		err      string
	}{
		"no selector":          {nil, []string{"a", "b", "c"}, ""},
		"labels":               {map[string]any{"matchLabels": map[string]any{"rack": "1"}}, []string{"a"}, ""},
		"labels of no host":    {map[string]any{"matchLabels": map[string]any{"rack": "1", "disk": "hdd"}}, nil, ""},
		"in":                   {expression("in", "1", "2"), []string{"a", "b"}, ""},
		"In":                   {expression("In", "2"), []string{"b"}, ""},
		"notin":                {expression("notin", "1"), []string{"b", "c"}, ""},
		"exists":               {expression("exists"), []string{"a", "b"}, ""},
		"does not exist":       {expression("!"), []string{"c"}, ""},
		"unknown operator":     {expression("like", "1"), nil, "spec.hostSelector.matchExpressions[0]"},
		"labels of wrong type": {map[string]any{"matchLabels": "rack"}, nil, "spec.hostSelector.matchLabels"},
	}
	for name, tt := range tests {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			t.Run(name+" "+version, func(t *testing.T) {
				g := NewWithT(t)
				m := machine(version)
				if tt.selector != nil {
					m.Object["spec"].(map[string]any)["hostSelector"] = tt.selector
				}
				got, err := Candidates(m, hosts)
				if tt.err != "" {
					g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
					return
				}
				g.Expect(err).NotTo(HaveOccurred())
				var names []string
				for _, host := range got {
					names = append(names, host.Name)
				}
				g.Expect(names).To(Equal(tt.want))
			})
		}
	}
}

func TestNetworkDataSecret(t *testing.T) {
	g := NewWithT(t)
	host := labelled("a", nil)
	name := func() string {
		got, err := NetworkDataSecret(&host)
		g.Expect(err).NotTo(HaveOccurred())
		return got
	}
	g.Expect(name()).To(BeEmpty())
	host.Spec.NetworkData = &corev1.SecretReference{Name: "installed"}
	g.Expect(name()).To(Equal("installed"))
	host.Spec.NetworkData.Namespace = "ns"
	g.Expect(name()).To(Equal("installed"))
	host.Spec.NetworkData.Namespace = "other"
	_, err := NetworkDataSecret(&host)
	g.Expect(err).To(MatchError(ContainSubstring("must be in that of the host")))
	host.Spec.PreprovisioningNetworkDataName = "before"
	g.Expect(name()).To(Equal("before"), "it is for the time before the installation")
}

func TestFree(t *testing.T) {
	g := NewWithT(t)
	host := labelled("a", nil)
	g.Expect(Free(&host)).To(BeTrue())
	host.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Cluster"}
	g.Expect(Free(&host)).To(BeTrue(), "kept for a Metal3Machine of the same template (METAL3 M3-55)")
	host.Spec.ConsumerRef.Kind = MachineKind
	g.Expect(Free(&host)).To(BeFalse())
}

func TestNICs(t *testing.T) {
	g := NewWithT(t)
	host := labelled("a", nil)
	g.Expect(NICs(&host)).To(BeEmpty())
	host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{
		NIC: []bmov1alpha1.NIC{{Name: "eno1", MAC: "AA:00"}, {Name: "eno1", MAC: "aa:01"}, {Name: "eno2"}},
	}
	g.Expect(NICs(&host)).To(Equal(map[string]string{"eno1": "aa:00"}))
}
