// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// narrator tells what happens to the clusters of a namespace, a line for every transition that a user cares about, and keeps the time.
type narrator struct {
	out       io.Writer
	timeline  *Timeline
	namespace string
	start     time.Time

	mu sync.Mutex
	// ended: a World that is shared goes on when the story is over.
	ended bool
	// said is the last headline about each object.
	said map[types.UID]string
	// lines are those of the message of each condition of each control plane.
	lines map[string][]string
	// byInfra finds a Machine by the name of its infrastructure machine, byName by its own.
	byInfra, byName map[types.NamespacedName]machineID
}

type machineID struct {
	uid  types.UID
	name string
}

func newNarrator(out io.Writer, timeline *Timeline, namespace string) *narrator {
	return &narrator{
		out: out, timeline: timeline, namespace: namespace, start: time.Now(), said: map[types.UID]string{}, lines: map[string][]string{},
		byInfra: map[types.NamespacedName]machineID{}, byName: map[types.NamespacedName]machineID{},
	}
}

// printf writes a line with the time since the start.
func (n *narrator) printf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.line(fmt.Sprintf(format, args...))
}

// end is the end of the story: nothing is written from now on.
func (n *narrator) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
}

func (n *narrator) line(text string) {
	if n.ended {
		return
	}
	fmt.Fprintf(n.out, "%6.1fs  %s\n", time.Since(n.start).Seconds(), text)
}

// observe is told of every change of a watched object.
func (n *narrator) observe(object client.Object) {
	if object.GetNamespace() != n.namespace {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	headline := ""
	switch o := object.(type) {
	case *clusterv1.Cluster:
		headline = clusterHeadline(o)
	case *clusterv1.Machine:
		headline = n.machineHeadline(o)
	case *controlplanev1.OpenshiftAssistedControlPlane:
		headline = n.installHeadline(o)
	case *bmov1alpha1.BareMetalHost:
		headline = n.hostHeadline(o)
	case *assisted.Agent:
		headline = n.agentHeadline(o)
	case *assisted.InfraEnv:
		if o.Status.ISODownloadURL != "" {
			headline = "has a discovery image"
		}
	}
	if headline != "" && n.said[object.GetUID()] != headline {
		n.said[object.GetUID()] = headline
		kind := fmt.Sprintf("%T", object)
		n.line(fmt.Sprintf("%s %s %s", kind[strings.LastIndex(kind, ".")+1:], object.GetName(), headline))
	}
	if controlPlane, ok := object.(*controlplanev1.OpenshiftAssistedControlPlane); ok && controlPlane.Status.Etcd.Members != nil {
		n.lifecycle(controlPlane)
	}
}

func clusterHeadline(cluster *clusterv1.Cluster) string {
	if conditions.IsTrue(cluster, clusterv1.ClusterAvailableCondition) {
		return "is Available"
	}
	if cluster.Status.Phase == "" {
		return ""
	}
	return "is " + cluster.Status.Phase
}

func (n *narrator) machineHeadline(machine *clusterv1.Machine) string {
	id := machineID{uid: machine.UID, name: machine.Name}
	n.byName[client.ObjectKeyFromObject(machine)] = id
	n.byInfra[types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}] = id
	n.timeline.pass(machine.UID, machine.Name, MachineCreated)
	if machine.Spec.Bootstrap.DataSecretName != nil {
		n.timeline.pass(machine.UID, machine.Name, BootMediaReady)
	}
	if machine.Status.Phase == "" {
		return ""
	}
	headline := "is " + machine.Status.Phase
	if machine.Status.NodeRef.IsDefined() {
		n.timeline.pass(machine.UID, machine.Name, NodeJoined)
		headline += ", Node " + machine.Status.NodeRef.Name + " joined"
	}
	if conditions.IsTrue(machine, clusterv1.ReadyCondition) {
		n.timeline.pass(machine.UID, machine.Name, MachineReadyMark)
		headline += ", Ready"
	}
	return headline
}

func (n *narrator) installHeadline(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) string {
	install := controlPlane.Status.Install
	if install.Phase == "" {
		return ""
	}
	phase := install.Phase
	if phase == string(assisted.PhaseCompleted) {
		phase = "" // Nothing goes on any more.
	}
	n.timeline.enterPhase(phase)
	headline := fmt.Sprintf("installation: %s %d%%", install.Phase, ptr.Deref(install.ProgressPercentage, 0))
	if conditions.IsTrue(controlPlane, controlplanev1.AvailableCondition) {
		headline += ", Available"
	}
	if phase == "" {
		headline += membersHeadline(controlPlane)
	}
	return headline
}

// membersHeadline is how the members of the etcd of an installed control plane are.
func membersHeadline(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) string {
	etcd := controlPlane.Status.Etcd
	if etcd.Members == nil {
		return ""
	}
	return fmt.Sprintf(", %d of %d members of etcd serve", ptr.Deref(etcd.HealthyMembers, 0), *etcd.Members)
}

// lifecycleConditions say which Machines of an installed control plane come and go, and what they wait for.
var lifecycleConditions = []string{
	controlplanev1.RollingOutCondition, controlplanev1.RemediatingCondition, controlplanev1.ScalingUpCondition,
	controlplanev1.ScalingDownCondition,
}

// lifecycle writes each line of the messages of these conditions that was not there before.
func (n *narrator) lifecycle(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) {
	for _, condition := range lifecycleConditions {
		key := string(controlPlane.UID) + condition
		var lines []string
		if conditions.IsTrue(controlPlane, condition) {
			lines = strings.Split(conditions.GetMessage(controlPlane, condition), "\n")
		}
		for _, line := range lines {
			if !slices.Contains(n.lines[key], line) {
				n.line(fmt.Sprintf("OpenshiftAssistedControlPlane %s %s: %s", controlPlane.Name, condition, strings.TrimLeft(line, " *")))
			}
		}
		n.lines[key] = lines
	}
}

// unusedHostStates are passed by every new host in no time.
var unusedHostStates = map[bmov1alpha1.ProvisioningState]bool{
	bmov1alpha1.StateNone: true, bmov1alpha1.StateRegistering: true, bmov1alpha1.StateInspecting: true, bmov1alpha1.StatePreparing: true,
}

func (n *narrator) hostHeadline(host *bmov1alpha1.BareMetalHost) string {
	if unusedHostStates[host.Status.Provisioning.State] && host.Status.ErrorMessage == "" {
		return ""
	}
	headline := fmt.Sprintf("is %s", host.Status.Provisioning.State)
	if ref := host.Spec.ConsumerRef; ref != nil {
		id := n.byInfra[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}]
		headline += " for Machine " + id.name
		n.timeline.pass(id.uid, id.name, HostChosen)
		if host.Status.Provisioning.State == bmov1alpha1.StateProvisioned {
			n.timeline.pass(id.uid, id.name, HostProvisioned)
		}
	}
	if host.Status.ErrorMessage != "" {
		headline += ", error: " + host.Status.ErrorMessage
	}
	return headline
}

// hostStages are the stages of a host's installation that are worth a line.
var hostStages = map[string]bool{"Writing image to disk": true, "Rebooting": true, "Joined": true}

func (n *narrator) agentHeadline(agent *assisted.Agent) string {
	machine, _, claimed := strings.Cut(agent.Annotations[bootstrapv1.ClaimAnnotation], "/")
	if !claimed {
		if agent.Status.Inventory.Hostname == "" {
			return ""
		}
		return fmt.Sprintf("has registered from %s and is not recognised yet", agent.Status.Inventory.Hostname)
	}
	id := n.byName[types.NamespacedName{Namespace: agent.Namespace, Name: machine}]
	n.timeline.pass(id.uid, id.name, AgentRecognised)
	headline := fmt.Sprintf("is the host of Machine %s", machine)
	if agent.Spec.ClusterDeploymentName == nil {
		return headline + ", unbound"
	}
	n.timeline.pass(id.uid, id.name, AgentBound)
	switch {
	case agent.Installed():
		n.timeline.pass(id.uid, id.name, HostInstalled)
		return headline + ", installed"
	case agent.Failed():
		return headline + ", installation failed: " + agent.Status.DebugInfo.StateInfo
	case agent.Installing():
		n.timeline.pass(id.uid, id.name, InstallStarted)
		if stage := agent.Status.Progress.CurrentStage; hostStages[stage] {
			return headline + ", " + strings.ToLower(stage)
		}
		return ""
	}
	return fmt.Sprintf("%s, bound as %s", headline, agent.Spec.Role)
}
