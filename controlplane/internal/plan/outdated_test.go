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
