// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// templateRef is the infrastructure template of the views below.
var templateRef = clusterv1.ContractVersionedObjectReference{
	APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "Metal3MachineTemplate", Name: "t",
}

// madeFrom is an infrastructure machine of a template.
func madeFrom(template string) *unstructured.Unstructured {
	infra := &unstructured.Unstructured{}
	infra.SetAnnotations(map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      template,
		clusterv1.TemplateClonedFromGroupKindAnnotation: templateRef.Kind + "." + templateRef.APIGroup,
	})
	return infra
}

// currentView is an installed cluster that is well, with as many Machines as there should be, all of them up to date and an hour old.
func currentView(replicas int) *view.View {
	v := installedView(replicas + 1)
	v.Now = noon
	v.ControlPlane.Spec.Replicas = new(int32(replicas))
	v.ControlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
	v.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef = templateRef
	v.Machines.Infra = map[string]*unstructured.Unstructured{}
	v.Machines.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	for name, m := range v.Machines.Owned {
		m.Spec.Version, m.CreationTimestamp = v.ControlPlane.Spec.Version, metav1.NewTime(noon.Add(-time.Hour))
		says(clusterv1.MachineNodeReadyCondition, metav1.ConditionTrue)(m)
		v.Machines.Infra[name], v.Machines.Configs[name] = madeFrom("t"), &bootstrapv1.OpenshiftAssistedConfig{}
	}
	return v
}

// writeDefaults writes down what holds anyway.
func writeDefaults(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
	spec.Boot.Mode = bootstrapv1.BootModeLiveISO
	spec.CPUArchitecture = bootstrapv1.CPUArchitectureX86
	spec.HostIdentity = bootstrapv1.HostIdentityBareMetalHost
	spec.NodeRegistration.Name = bootstrapv1.NodeNameMachine
}

// reorder has the control plane ask for what cp-0 has, in another order.
func reorder(v *view.View) {
	sets := func(first, second int) bootstrapv1.OpenshiftAssistedConfigSpec {
		words := []string{"a", "b"}
		two := []string{words[first], words[second]}
		var spec bootstrapv1.OpenshiftAssistedConfigSpec
		spec.Proxy.NoProxy, spec.AdditionalNTPSources, spec.NTPSources, spec.Installation.DeletedKernelArguments = two, two, two, two
		for _, key := range two {
			spec.NodeRegistration.Labels = append(spec.NodeRegistration.Labels, bootstrapv1.NodeLabel{Key: key, Value: new("of " + key)})
		}
		spec.NMStateConfigSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: two[0], Operator: metav1.LabelSelectorOpIn, Values: two}, {Key: two[1], Operator: metav1.LabelSelectorOpIn, Values: two},
		}}
		return spec
	}
	v.Machines.Configs["cp-0"].Spec, v.ControlPlane.Spec.OpenshiftAssistedConfigSpec = sets(0, 1), sets(1, 0)
}

func TestContractDifferences(t *testing.T) {
	spec := func(v *view.View) *bootstrapv1.OpenshiftAssistedConfigSpec {
		return &v.ControlPlane.Spec.OpenshiftAssistedConfigSpec
	}
	after := func(at time.Time) func(*view.View) {
		return func(v *view.View) { v.ControlPlane.Spec.Rollout.After = metav1.NewTime(at) }
	}
	discovery := func(v *view.View) {
		spec(v).AdditionalNTPSources, spec(v).SSHAuthorizedKey = []string{"ntp.example.com"}, "ssh-ed25519 AAAA"
	}
	for name, tc := range map[string]struct {
		change func(*view.View)
		want   []string
	}{
		"CP-45 nothing":         {change: func(*view.View) {}},
		"CP-45 another version": {func(v *view.View) { v.ControlPlane.Spec.Version = "v1.34.1" }, []string{"Version v1.33.4, v1.34.1 required"}},
		"KCP-9 another template": {
			func(v *view.View) { v.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "new" },
			[]string{"Infrastructure machine made from Metal3MachineTemplate.infrastructure.cluster.x-k8s.io t, " +
				"Metal3MachineTemplate.infrastructure.cluster.x-k8s.io new required"},
		},
		"KCP-9 another system on the host": {
			func(v *view.View) {
				spec(v).Installation.KernelArguments = []string{"quiet"}
				spec(v).NodeRegistration.Labels = []bootstrapv1.NodeLabel{{Key: "rack", Value: new("a")}}
			},
			[]string{"OpenshiftAssistedConfig differs from spec.openshiftAssistedConfigSpec in nodeRegistration, installation"},
		},
		"another discovery of a host that is installed": {change: discovery},
		"another discovery of a host that is not": {
			func(v *view.View) {
				discovery(v)
				v.Machines.Owned["cp-0"].Status.NodeRef.Name = ""
			},
			[]string{"OpenshiftAssistedConfig differs from spec.openshiftAssistedConfigSpec in sshAuthorizedKey, additionalNTPSources"},
		},
		"a default that is written down, on a host that is installed": {change: func(v *view.View) { writeDefaults(spec(v)) }},
		"a default that is written down, on a host that is not": {
			change: func(v *view.View) {
				writeDefaults(spec(v))
				v.Machines.Owned["cp-0"].Status.NodeRef.Name = ""
			},
		},
		"a default that is left out": {
			change: func(v *view.View) { writeDefaults(&v.Machines.Configs["cp-0"].Spec) },
		},
		"another order of sets, on a host that is installed": {change: reorder},
		"another order of sets, on a host that is not": {
			change: func(v *view.View) {
				reorder(v)
				v.Machines.Owned["cp-0"].Status.NodeRef.Name = ""
			},
		},
		"another value of a label, and another order": {
			func(v *view.View) {
				reorder(v)
				spec(v).NodeRegistration.Labels[0].Value = new("c")
			},
			[]string{"OpenshiftAssistedConfig differs from spec.openshiftAssistedConfigSpec in nodeRegistration"},
		},
		"another order of kernel arguments": {
			func(v *view.View) {
				v.Machines.Configs["cp-0"].Spec.Installation.KernelArguments = []string{"console=tty0", "console=ttyS0"}
				spec(v).Installation.KernelArguments = []string{"console=ttyS0", "console=tty0"}
			},
			[]string{"OpenshiftAssistedConfig differs from spec.openshiftAssistedConfigSpec in installation"},
		},
		"another architecture and another name of the Node": {
			func(v *view.View) {
				spec(v).CPUArchitecture, spec(v).NodeRegistration.Name = "aarch64", bootstrapv1.NodeNameBareMetalHost
			},
			[]string{"OpenshiftAssistedConfig differs from spec.openshiftAssistedConfigSpec in cpuArchitecture, nodeRegistration"},
		},
		"CP-61 it is older than the time of the rollout": {
			after(noon.Add(-time.Minute)), []string{"Machine is older than spec.rollout.after (2026-01-01T11:59:00Z)"},
		},
		"CP-61 the time of the rollout has not come":       {change: after(noon.Add(time.Minute))},
		"CP-61 it is younger than the time of the rollout": {change: after(noon.Add(-2 * time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			v := currentView(3)
			tc.change(v)
			NewWithT(t).Expect(plan.Differences(v, v.Machines.Owned["cp-0"])).To(Equal(tc.want))
		})
	}
}

// TestPreparedOfTheSameSpec: what was made for a Machine that is yet to be created stays, however the same spec is written.
func TestPreparedOfTheSameSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*bootstrapv1.OpenshiftAssistedConfigSpec)
		discard int
	}{
		"a default that is written down": {change: writeDefaults},
		"another architecture": {
			func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) { spec.CPUArchitecture = "aarch64" }, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := currentView(3)
			v.ControlPlane.Spec.Replicas = new(int32(4))
			d := plan.DecideMachines(v, nil, false)
			g.Expect(d.Create).To(HaveLen(1), "%v", d.Blockers)
			prepared := view.Prepared{Config: &bootstrapv1.OpenshiftAssistedConfig{}, Infra: madeFrom("t")}
			prepared.Config.Name = d.Create[0]
			v.Machines.Prepared = []view.Prepared{prepared}
			tc.change(&v.ControlPlane.Spec.OpenshiftAssistedConfigSpec)
			g.Expect(plan.DecideMachines(v, nil, false).Discard).To(HaveLen(tc.discard))
		})
	}
}
