// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

const (
	before = "v1.33.4"
	wanted = "v1.34.1"
	ahead  = "v1.34.2"
)

var clusterLabels = map[string]string{clusterv1.ClusterNameLabel: "demo"}

func template(version string) clusterv1.MachineTemplateSpec {
	var t clusterv1.MachineTemplateSpec
	t.Spec.ClusterName, t.Spec.Version = "demo", version
	t.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfigTemplate", Name: "workers",
	}
	return t
}

func deployment() *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", UID: "md", Labels: clusterLabels}}
	d.Spec.ClusterName = "demo"
	d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	d.Spec.Template = template(wanted)
	return d
}

// metaOf is the metadata of an object that another one controls.
func metaOf(name, kind, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), Labels: clusterLabels, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: owner, UID: types.UID(owner), Controller: ptr.To(true)},
		},
	}
}

func machineSet(name, version string, machines ...*clusterv1.Machine) set {
	s := &clusterv1.MachineSet{ObjectMeta: metaOf(name, "MachineDeployment", "md")}
	s.Spec.ClusterName, s.Spec.Template, s.Spec.Replicas = "demo", template(version), ptr.To(int32(len(machines)))
	for _, m := range machines {
		m.OwnerReferences = metaOf("", "MachineSet", name).OwnerReferences
	}
	return set{set: s, machines: machines}
}

// machine is one with a version, whose Node runs the version of its kubelet; an empty one is no Node.
func machine(name, version, kubelet string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: clusterLabels}}
	m.Spec.ClusterName, m.Spec.Version = "demo", version
	if kubelet != "" {
		m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: kubelet}
	}
	return m
}

var paused = map[string]string{clusterv1.PausedAnnotation: ""}

func TestDecide(t *testing.T) {
	old := func(name string) *clusterv1.Machine { return machine(name, before, before) }
	upgraded := func(name string) *clusterv1.Machine { return machine(name, before, wanted) }
	followed := func(name string) *clusterv1.Machine { return machine(name, wanted, wanted) }
	type change = func(*clusterv1.MachineDeployment, []set)
	tests := []struct {
		name     string
		sets     []set
		change   change
		machines []string
		follow   []string
	}{
		{name: "no Node is upgraded yet", sets: []set{machineSet("a", before, old("a0"), old("a1"))}},
		{name: "one Node is upgraded", sets: []set{machineSet("a", before, upgraded("a0"), old("a1"))}, machines: []string{"a0"}},
		{name: "all Nodes are upgraded", sets: []set{machineSet("a", before, upgraded("a0"), upgraded("a1"))}, machines: []string{"a0", "a1"}},
		{name: "one Machine has followed", sets: []set{machineSet("a", before, followed("a0"), upgraded("a1"))}, machines: []string{"a1"}},
		{name: "all Machines have followed", sets: []set{machineSet("a", before, followed("a0"), followed("a1"))}, follow: []string{"a"}},
		{name: "everything has followed", sets: []set{machineSet("a", wanted, followed("a0"))}},
		{
			name: "a Machine came after the bump, from a MachineSet of the new version",
			sets: []set{machineSet("a", before, followed("a0"), upgraded("a1")), machineSet("b", wanted, followed("b0"))}, machines: []string{"a1"},
		},
		{
			name: "two MachineSets of older versions",
			sets: []set{machineSet("a", "v1.32.7", followed("a0")), machineSet("b", before, followed("b0"))}, follow: []string{"a", "b"},
		},
		{
			name: "one of two is not there yet", sets: []set{machineSet("a", before, old("a0")), machineSet("b", before, followed("b0"))},
			follow: []string{"b"},
		},
		{name: "a MachineSet scaled to 0", sets: []set{machineSet("a", before), machineSet("b", before, followed("b0"))}, follow: []string{"b"}},
		{name: "the kubelet is ahead of the MachineDeployment", sets: []set{machineSet("a", before, machine("a0", before, ahead))}},
		{name: "the kubelet went ahead afterwards", sets: []set{machineSet("a", before, machine("a0", wanted, ahead), followed("a1"))}},
		{name: "a downgrade of Machines", sets: []set{machineSet("a", before, machine("a0", ahead, wanted))}},
		{name: "a downgrade of a MachineSet", sets: []set{machineSet("a", ahead, followed("a0"))}},
		{
			name:     "a version that was guessed without its build metadata",
			sets:     []set{machineSet("a", before, machine("a0", before, before+"+3b9f8b6"))},
			change:   func(d *clusterv1.MachineDeployment, _ []set) { d.Spec.Template.Spec.Version = before + "+3b9f8b6" },
			machines: []string{"a0"},
		},
		{
			name: "the kubelet has build metadata that nobody asks for",
			sets: []set{machineSet("a", before, machine("a0", before, wanted+"+3b9f8b6"))},
		},
		{
			name: "another field differs too", sets: []set{machineSet("a", before, followed("a0")), machineSet("b", before, upgraded("b0"))},
			change:   func(d *clusterv1.MachineDeployment, _ []set) { d.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "other" },
			machines: []string{"b0"},
		},
		{
			name: "a field differs that changes in place", sets: []set{machineSet("a", before, followed("a0"))},
			change: func(d *clusterv1.MachineDeployment, _ []set) { d.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](5) }, follow: []string{"a"},
		},
		{
			name: "RollingUpdate", sets: []set{machineSet("a", before, upgraded("a0")), machineSet("b", before, followed("b0"))},
			change: func(d *clusterv1.MachineDeployment, _ []set) {
				d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
			},
		},
		{
			name: "no strategy, which is RollingUpdate", sets: []set{machineSet("a", before, upgraded("a0"))},
			change: func(d *clusterv1.MachineDeployment, _ []set) { d.Spec.Rollout.Strategy.Type = "" },
		},
		{
			name: "a MachineDeployment without a version", sets: []set{machineSet("a", before, machine("a0", before, ""))},
			change: func(d *clusterv1.MachineDeployment, _ []set) { d.Spec.Template.Spec.Version = "" },
		},
		{name: "a Machine without a version", sets: []set{machineSet("a", before, machine("a0", "", wanted))}},
		{
			name: "a Machine without a Node", sets: []set{machineSet("a", before, machine("a0", before, ""), upgraded("a1"))},
			machines: []string{"a1"},
		},
		{name: "a Machine without a Node waits", sets: []set{machineSet("a", before, machine("a0", wanted, ""), followed("a1"))}},
		{
			name: "a Machine that goes is left, and nobody waits for it", sets: []set{machineSet("a", before, upgraded("a0"), followed("a1"))},
			change: func(_ *clusterv1.MachineDeployment, s []set) {
				s[0].machines[0].DeletionTimestamp = ptr.To(metav1.Now())
			}, follow: []string{"a"},
		},
		{
			name: "all Machines go", sets: []set{machineSet("a", before, followed("a0"))},
			change: func(_ *clusterv1.MachineDeployment, s []set) {
				s[0].machines[0].DeletionTimestamp = ptr.To(metav1.Now())
			},
		},
		{
			name: "a MachineSet goes", sets: []set{machineSet("a", before, upgraded("a0")), machineSet("b", before, followed("b0"))},
			change: func(_ *clusterv1.MachineDeployment, s []set) { s[0].set.DeletionTimestamp = ptr.To(metav1.Now()) }, follow: []string{"b"},
		},
		{
			name: "the MachineDeployment goes", sets: []set{machineSet("a", before, upgraded("a0")), machineSet("b", before, followed("b0"))},
			change: func(d *clusterv1.MachineDeployment, _ []set) { d.DeletionTimestamp = ptr.To(metav1.Now()) },
		},
		{
			name: "a paused Machine is left and waited for", sets: []set{machineSet("a", before, upgraded("a0"), followed("a1"))},
			change: func(_ *clusterv1.MachineDeployment, s []set) { s[0].machines[0].Annotations = paused },
		},
		{
			name: "a paused MachineSet", sets: []set{machineSet("a", before, followed("a0")), machineSet("b", before, followed("b0"))},
			change: func(_ *clusterv1.MachineDeployment, s []set) { s[0].set.Annotations = paused }, follow: []string{"b"},
		},
		{
			name: "a MachineDeployment paused by annotation", sets: []set{machineSet("a", before, upgraded("a0"))},
			change: func(d *clusterv1.MachineDeployment, _ []set) { d.Annotations = paused },
		},
		{
			name: "a MachineDeployment paused by its field", sets: []set{machineSet("a", before, upgraded("a0"))},
			change: func(d *clusterv1.MachineDeployment, _ []set) { d.Spec.Paused = ptr.To(true) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := deployment()
			if tt.change != nil {
				tt.change(d, tt.sets)
			}
			var machines, follow []string
			got := decide(&clusterv1.Cluster{}, []group{{deployment: d, sets: tt.sets}})
			g := NewWithT(t)
			for _, f := range got.machines {
				g.Expect(f.version).To(Equal(d.Spec.Template.Spec.Version))
				machines = append(machines, f.machine.Name)
			}
			for _, f := range got.sets {
				g.Expect(f.version).To(Equal(d.Spec.Template.Spec.Version))
				g.Expect(f.deployment).To(BeIdenticalTo(d))
				follow = append(follow, f.set.Name)
			}
			g.Expect(machines).To(Equal(tt.machines), "Machines")
			g.Expect(follow).To(Equal(tt.follow), "MachineSets")
		})
	}
}
