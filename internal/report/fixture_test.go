// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/openshift/assisted-service/api/common"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// start is when the cluster of the tests was applied.
var start = time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC)

// usual is how long the phases of a Machine take.
var usual = []time.Duration{
	20 * time.Second, 10 * time.Second, 6 * time.Minute, 4 * time.Minute, 15 * time.Second, 8 * time.Minute, 22 * time.Minute,
	5 * time.Minute, time.Minute,
}

func at(after time.Duration) metav1.Time { return metav1.NewTime(start.Add(after)) }

func condition(conditionType string, status metav1.ConditionStatus, reason, message string, after time.Duration) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: at(after)}
}

// newInput returns a cluster without Machines.
func newInput(now time.Duration) *Input {
	in := &Input{Now: start.Add(now), Cluster: &clusterv1.Cluster{}, ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}
	meta := metav1.ObjectMeta{Namespace: "demo", Name: "demo", UID: "cluster", CreationTimestamp: at(0)}
	in.Cluster.ObjectMeta = meta
	in.Cluster.Status.Phase = "Provisioning"
	in.ControlPlane.ObjectMeta = meta
	in.ControlPlane.UID = "control-plane"
	in.ControlPlane.Spec.DistributionVersion, in.ControlPlane.Spec.Version = "4.20.0", "v1.33.5"
	in.ControlPlane.Status.Install.Phase = "Installing"
	in.ControlPlane.Status.Conditions = []metav1.Condition{
		condition(controlplanev1.AvailableCondition, "False", "NotAvailable", "the cluster is not installed yet", 5*time.Second),
		condition(controlplanev1.InstalledCondition, "False", "Installing", "hosts are being installed (34 %)", 18*time.Minute),
		condition(controlplanev1.ReleaseResolvedCondition, "True", "Resolved", "", 5*time.Second),
		condition(clusterv1.DeletingCondition, "False", "NotDeleting", "", 0),
	}
	in.Install = &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "demo", UID: "install"}}
	return in
}

// machineOptions are what a Machine of the tests is like.
type machineOptions struct {
	name    string
	worker  bool
	created time.Duration
	// times are of the phases; those that are not there have not ended.
	times []time.Duration
}

// addMachine adds a Machine with its objects, as they are when the times have passed.
func addMachine(in *Input, o machineOptions) {
	ends := map[Phase]time.Duration{}
	end := o.created
	for i, d := range o.times {
		end += d
		ends[phases[i]] = end
	}
	status := func(phase Phase) (metav1.ConditionStatus, time.Duration) {
		if after, ok := ends[phase]; ok {
			return metav1.ConditionTrue, after
		}
		return metav1.ConditionFalse, o.created
	}
	of := func(conditionType string, phase Phase, good, bad string) metav1.Condition {
		s, after := status(phase)
		if s == metav1.ConditionTrue {
			return condition(conditionType, s, good, "", after)
		}
		return condition(conditionType, s, bad, "waiting for it", after)
	}
	meta := metav1.ObjectMeta{Namespace: "demo", Name: o.name, UID: types.UID("m-" + o.name), CreationTimestamp: at(o.created)}
	machine := clusterv1.Machine{ObjectMeta: meta}
	if !o.worker {
		machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	}
	machine.Spec.Bootstrap.ConfigRef.Name, machine.Spec.InfrastructureRef.Name = o.name, o.name
	machine.Status.Phase = "Provisioning"
	machine.Status.Conditions = []metav1.Condition{
		of(clusterv1.ReadyCondition, Ready, "Ready", "NotReady"),
		of(clusterv1.MachineNodeReadyCondition, Node, "NodeReady", "WaitingForNode"),
		of(clusterv1.MachineInfrastructureReadyCondition, Booted, "Ready", "NotReady"),
		of(clusterv1.MachineBootstrapConfigReadyCondition, Media, "Ready", "NotReady"),
	}
	if _, ok := ends[Node]; ok {
		machine.Status.NodeRef.Name, machine.Status.Phase = o.name, "Running"
	}
	in.Machines = append(in.Machines, machine)
	config := bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: meta}
	config.UID = types.UID("c-" + o.name)
	config.Status.Conditions = []metav1.Condition{
		of(bootstrapv1.DataSecretAvailableCondition, Media, "Available", "WaitingForDiscoveryImage"),
		of(bootstrapv1.HostRecognizedCondition, Recognised, "Recognized", "WaitingForAgent"),
		of(bootstrapv1.AgentInstalledCondition, Installed, "Installed", "Installing"),
	}
	in.Configs = append(in.Configs, config)
	if _, ok := ends[HostChosen]; ok {
		addHost(in, o.name, ends)
	}
	if _, ok := ends[Recognised]; ok {
		addAgent(in, o.name, ends)
	}
	if _, ok := ends[Installing]; ok {
		in.History = addPast(in.History, meta.UID, o.name, o.created, ends[Installing])
	}
}

// addPast adds when the installation began, which the objects do not tell.
func addPast(history *History, uid types.UID, name string, created, installing time.Duration) *History {
	if history == nil {
		history = &History{}
	}
	history.Machines = append(history.Machines, PastMachine{
		UID: uid, Name: name, Created: start.Add(created), Passed: map[Phase]time.Time{Installing: start.Add(installing)},
	})
	return history
}

func addHost(in *Input, name string, ends map[Phase]time.Duration) {
	infra := unstructured.Unstructured{}
	infra.SetAPIVersion(metal3.InfrastructureGroup + "/v1beta1")
	infra.SetKind(metal3.MachineKind)
	infra.SetNamespace("demo")
	infra.SetName(name)
	infra.SetUID(types.UID("i-" + name))
	infra.SetAnnotations(map[string]string{metal3.HostAnnotation: "demo/host-" + name})
	in.Infrastructure = append(in.Infrastructure, infra)
	host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "host-" + name, UID: types.UID("h-" + name)}}
	host.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: infra.GetAPIVersion(), Kind: infra.GetKind(), Namespace: "demo", Name: name}
	host.Status.Provisioning.State = bmov1alpha1.StateProvisioning
	host.Status.OperationHistory.Provision.Start = at(ends[HostChosen])
	if booted, ok := ends[Booted]; ok {
		host.Status.Provisioning.State = bmov1alpha1.StateProvisioned
		host.Status.OperationHistory.Provision.End = at(booted)
	}
	in.Hosts = append(in.Hosts, host)
}

func addAgent(in *Input, name string, ends map[Phase]time.Duration) {
	agent := assisted.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: "demo", Name: "agent-" + name, UID: types.UID("a-" + name),
		Annotations: map[string]string{bootstrapv1.ClaimAnnotation: name + "/m-" + name},
	}}
	agent.Status.DebugInfo.State = "known"
	for _, c := range []struct {
		name  string
		phase Phase
	}{{assisted.ConditionBound, Bound}, {assisted.ConditionInstalled, Installed}} {
		condition := assisted.Condition{
			Type:               c.name,
			Status:             corev1.ConditionFalse,
			Reason:             "Not" + c.name,
			LastTransitionTime: at(ends[Recognised]),
		}
		if after, ok := ends[c.phase]; ok {
			condition = assisted.Condition{Type: c.name, Status: corev1.ConditionTrue, Reason: c.name, LastTransitionTime: at(after)}
		}
		agent.Status.Conditions = append(agent.Status.Conditions, condition)
	}
	in.Agents = append(in.Agents, agent)
}

// fail makes the condition of a config false.
func fail(in *Input, machine, conditionType, reason, message string, after time.Duration) {
	for i := range in.Configs {
		if in.Configs[i].Name != machine {
			continue
		}
		for j := range in.Configs[i].Status.Conditions {
			if in.Configs[i].Status.Conditions[j].Type == conditionType {
				in.Configs[i].Status.Conditions[j] = condition(conditionType, "False", reason, message, after)
			}
		}
	}
}

func warning(about corev1.ObjectReference, reason, message string, after time.Duration) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: reason}, InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: reason,
		Message: message, FirstTimestamp: at(after), LastTimestamp: at(after), Count: 1,
	}
}

// oneMachine is a single-node cluster that is Available.
func oneMachine() *Input {
	in := newInput(time.Hour)
	addMachine(in, machineOptions{name: "demo-control-plane-0", created: 5 * time.Second, times: usual})
	in.Cluster.Status.Phase = "Provisioned"
	in.Cluster.Status.Conditions = []metav1.Condition{condition(clusterv1.ClusterAvailableCondition, "True", "Available", "", 47*time.Minute)}
	in.ControlPlane.Status.Install.Phase = "Completed"
	in.ControlPlane.Status.Conditions[0] = condition(controlplanev1.AvailableCondition, "True", "Available", "", 46*time.Minute)
	in.ControlPlane.Status.Conditions[1] = condition(controlplanev1.InstalledCondition, "True", "Installed", "", 45*time.Minute)
	in.Writes = []Writer{
		{Name: "bootstrap", Writes: []Write{{"patch", "openshiftassistedconfigs/status", 9}, {"create", "events", 4}, {"patch", "agents", 2}}},
		{Name: "control plane", Writes: []Write{{"patch", "openshiftassistedcontrolplanes/status", 17}, {"create", "machines", 1}}},
	}
	return in
}

// sixMachines is a cluster that is being installed: a host does not register, and another one fails checks.
func sixMachines() *Input {
	in := newInput(40 * time.Minute)
	for i := range 3 {
		addMachine(
			in,
			machineOptions{name: fmt.Sprintf("demo-control-plane-%d", i), created: 5 * time.Second, times: scaled(usual[:6], 1+0.1*float64(i))},
		)
	}
	addMachine(in, machineOptions{name: "demo-workers-x7k2p-4xq8r", worker: true, created: 6 * time.Second, times: usual[:3]})
	addMachine(in, machineOptions{name: "demo-workers-x7k2p-9bn5c", worker: true, created: 6 * time.Second, times: usual[:5]})
	addMachine(in, machineOptions{name: "demo-workers-x7k2p-h2wfl", worker: true, created: 6 * time.Second, times: usual[:1]})
	fail(in, "demo-workers-x7k2p-4xq8r", bootstrapv1.HostRecognizedCondition, bootstrapv1.HostNeverRegisteredReason,
		"BareMetalHost host-3 was booted at 2026-10-05T08:06:36Z and power-cycled, and its Agent has not registered (attempt 2 of 2): "+
			"look at the host's console, its boot medium and its network", 36*time.Minute)
	for i := range in.Agents {
		if in.Agents[i].Name == "agent-demo-workers-x7k2p-9bn5c" {
			in.Agents[i].Status.ValidationsInfo = common.ValidationsStatus{"hardware": {{
				ID: "has-min-memory", Status: "failure", Message: "Require at least 16.00 GiB RAM for role worker, found only 8.00 GiB",
			}, {ID: "connected", Status: "success", Message: "Host is connected"}}}
		}
	}
	in.History.Faults = []PastFault{{
		Kind: kindConfig, Name: "demo-control-plane-1", Condition: bootstrapv1.HostHealthyCondition, Reason: bootstrapv1.HostErrorReason,
		Message: "BareMetalHost host-1 in state provisioning reports power management error: the BMC did not answer",
		From:    start.Add(3 * time.Minute), To: start.Add(4 * time.Minute), Count: 2,
	}}
	in.Events = []corev1.Event{
		warning(corev1.ObjectReference{Kind: kindConfig, Name: "demo-workers-x7k2p-4xq8r", UID: "c-demo-workers-x7k2p-4xq8r"},
			bootstrapv1.EventHostRebooted, "BareMetalHost host-3 is power-cycled: it has not registered in time", 36*time.Minute),
	}
	return in
}

func scaled(times []time.Duration, factor float64) []time.Duration {
	out := make([]time.Duration, len(times))
	for i, d := range times {
		out[i] = time.Duration(float64(d) * factor).Round(time.Second)
	}
	return out
}

// manyMachines is a large cluster: most Machines are ready, some wait, some report faults, and a few were added after a day.
func manyMachines(count int) *Input {
	in := newInput(26 * time.Hour)
	for i := range 3 {
		addMachine(in, machineOptions{name: fmt.Sprintf("big-control-plane-%d", i), created: 5 * time.Second, times: usual})
	}
	for i := range count - 3 {
		// A spread that is the same each time.
		spread := 0.8 + float64((i*37)%50)/100
		o := machineOptions{
			name:    fmt.Sprintf("big-workers-7f9c4-%05d", i*7919%100000),
			worker:  true,
			created: time.Duration(6+i/20) * time.Second,
			times:   scaled(usual, spread),
		}
		switch {
		case i%45 == 7:
			o.times = o.times[:3]
		case i%60 == 11:
			o.times = scaled(o.times, 2.5)
		case i >= count-9:
			o.created += 25 * time.Hour
		}
		addMachine(in, o)
		if i%45 == 7 {
			fail(in, o.name, bootstrapv1.HostRecognizedCondition, bootstrapv1.AgentNotRecognizedReason, "BareMetalHost host-"+o.name+
				" was booted and no Agent has its identity", 20*time.Minute)
		}
	}
	return in
}
