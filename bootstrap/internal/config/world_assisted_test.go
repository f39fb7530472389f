// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const serviceFinalizer = "agent-install.openshift.io/service"

// bootTime is how long a server takes to boot.
const bootTime = 3 * time.Minute

// Stages of the installation beside those that assisted names.
const (
	stageWaiting = ""
	stageError   = "error"
)

// The states of Agents through which they go, beside those that assisted names.
const (
	agentBinding    = "binding"
	agentUnbinding  = "unbinding"
	agentInstalling = "installing-in-progress"
	agentInstalled  = "installed"
	agentError      = "error"
)

// service is assisted-service.
func (w *world) service() {
	if w.serviceAway {
		return
	}
	infraEnvs := &assisted.InfraEnvList{}
	w.list(infraEnvs)
	for i := range infraEnvs.Items {
		w.serveInfraEnv(&infraEnvs.Items[i])
	}
	w.serveCluster()
	for _, name := range slices.Sorted(maps.Keys(w.servers)) {
		w.register(name, w.servers[name])
	}
	for _, a := range w.agents() {
		w.serveAgent(&a)
	}
}

// serveInfraEnv makes the image of an InfraEnv, with another URL whenever what is in it changes (ASSISTED 1.1).
func (w *world) serveInfraEnv(e *assisted.InfraEnv) {
	switch {
	case !e.DeletionTimestamp.IsZero():
		change(w, e, func(e *assisted.InfraEnv) { e.Finalizers = nil })
		return
	case len(e.Finalizers) == 0:
		change(w, e, func(e *assisted.InfraEnv) { e.Finalizers = []string{serviceFinalizer} })
		return
	}
	content, err := json.Marshal(struct {
		Spec     assisted.InfraEnvSpec
		Networks []assisted.NMStateConfigSpec
	}{e.Spec, w.networksOf(e)})
	w.must(err)
	sum := sha256.Sum256(content)
	url := imagesOfHosts + hex.EncodeToString(sum[:8]) + "/" + string(e.UID)
	tell(w, e, func(e *assisted.InfraEnv) {
		if e.Status.ISODownloadURL == url {
			return
		}
		e.Status.ISODownloadURL, e.Status.CreatedTime = url, w.now.UTC().Format("2006-01-02T15:04:05Z")
		e.Status.BootArtifacts.DiscoveryIgnitionURL = url
		e.Status.Conditions = []assisted.Condition{
			{Type: assisted.ConditionImageCreated, Status: corev1.ConditionTrue, Reason: "InfraEnvAvailable"},
		}
	})
}

// networksOf are the static networks in the image of an InfraEnv.
func (w *world) networksOf(e *assisted.InfraEnv) []assisted.NMStateConfigSpec {
	if e.Spec.NMStateConfigLabelSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(e.Spec.NMStateConfigLabelSelector)
	w.must(err)
	list := &assisted.NMStateConfigList{}
	w.list(list)
	var networks []assisted.NMStateConfigSpec
	for _, c := range list.Items {
		if selector.Matches(labels.Set(c.Labels)) {
			networks = append(networks, c.Spec)
		}
	}
	return networks
}

// infraEnv is the one whose image a server runs; nil when it is gone.
func (w *world) infraEnv(uid string) *assisted.InfraEnv {
	list := &assisted.InfraEnvList{}
	w.list(list)
	for i := range list.Items {
		if e := &list.Items[i]; string(e.UID) == uid && e.DeletionTimestamp.IsZero() {
			return e
		}
	}
	return nil
}

// register registers the server that runs an image. Its Agent has the name of its board, also when it registers again (ASSISTED fact 9).
func (w *world) register(name string, s *server) {
	if s.infraEnv == "" || s.frozen || s.dead {
		return
	}
	if w.now.Before(s.booted.Add(bootTime)) {
		w.changed = true // It will.
		return
	}
	e := w.infraEnv(s.infraEnv)
	if e == nil {
		s.frozen = true
		return
	}
	agent := &assisted.Agent{}
	if w.get("agent-"+name, agent) {
		return
	}
	agent = &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "agent-" + name, Labels: map[string]string{assisted.InfraEnvLabel: e.Name},
		OwnerReferences: []metav1.OwnerReference{infraEnvReference(e)},
	}}
	w.must(w.hub.Create(context.Background(), agent))
}

// serveCluster lets the installation go on.
func (w *world) serveCluster() {
	d, install := w.clusterDeployment(), w.install()
	if d != nil && !d.DeletionTimestamp.IsZero() {
		w.letClusterGo(d)
		return
	}
	if install == nil || d == nil {
		return
	}
	switch w.stage {
	case stageWaiting:
		if w.imported {
			w.stage = assisted.ClusterStateAddingHosts
		} else if w.begins(install) {
			w.stage = assisted.ClusterStatePreparing
		}
	case assisted.ClusterStatePreparing:
		w.stage = assisted.ClusterStateInstalling
	case assisted.ClusterStateInstalling, assisted.ClusterStateInstallingPending:
		w.stage = w.installed()
	case assisted.ClusterStateFinalizing:
		w.stage = assisted.ClusterStateAddingHosts
	}
	w.report(install)
}

// letClusterGo unbinds the Agents of a cluster that is deleted (ASSISTED 8.5a).
func (w *world) letClusterGo(d *hivev1.ClusterDeployment) {
	for _, a := range w.agents() {
		if a.BoundTo(namespace, deployment) {
			change(w, &a, func(a *assisted.Agent) { a.Spec.ClusterDeploymentName = nil })
		}
	}
	w.stage = stageWaiting
	change(w, d, func(d *hivev1.ClusterDeployment) { d.Finalizers = nil })
}

// begins reports whether an installation begins: when it is not held, and as many hosts are ready as are bound and required (ASSISTED fact
// 2).
func (w *world) begins(install *hiveext.AgentClusterInstall) bool {
	ready := hiveext.ProvisionRequirements{}
	for _, a := range w.agents() {
		switch {
		case !a.BoundTo(namespace, deployment):
		case !a.ReadyToInstall():
			return false
		case a.Spec.Role == assisted.RoleMaster:
			ready.ControlPlaneAgents++
		default:
			ready.WorkerAgents++
		}
	}
	return !install.Spec.HoldInstallation && ready == install.Spec.ProvisionRequirements
}

func (w *world) report(install *hiveext.AgentClusterInstall) {
	state, reason := w.stage, hiveext.ClusterInstallationInProgressReason
	completed, failed := corev1.ConditionFalse, corev1.ConditionFalse
	switch w.stage {
	case stageWaiting:
		state, reason = assisted.ClusterStateInsufficient, hiveext.ClusterInstallationNotStartedReason
	case assisted.ClusterStateAddingHosts:
		completed, reason = corev1.ConditionTrue, hiveext.ClusterInstalledReason
	case stageError:
		failed, reason = corev1.ConditionTrue, hiveext.ClusterInstallationFailedReason
	}
	tell(w, install, func(i *hiveext.AgentClusterInstall) {
		i.Status.DebugInfo.State = state
		i.Status.Conditions = []hivev1.ClusterInstallCondition{
			{Type: hiveext.ClusterCompletedCondition, Status: completed, Reason: reason}, {Type: hiveext.ClusterFailedCondition, Status: failed},
		}
	})
}

// serveAgent lets an Agent and its host go on by one state.
func (w *world) serveAgent(a *assisted.Agent) {
	s := w.servers[strings.TrimPrefix(a.Name, "agent-")]
	switch {
	case !a.DeletionTimestamp.IsZero():
		w.letAgentGo(a, s)
		return
	case len(a.Finalizers) == 0:
		change(w, a, func(a *assisted.Agent) { a.Finalizers = []string{serviceFinalizer} })
		return
	}
	seen, err := json.Marshal([]any{a.Spec, a.Annotations})
	w.must(err)
	state, synced := w.nextState(a, s, string(seen)), true
	if w.refused[a.Name] == string(seen) {
		synced = false
	}
	if state == agentInstalled && s.infraEnv != "" {
		s.infraEnv, s.node, s.labels = "", a.Spec.Hostname, a.Spec.NodeLabels
	}
	tell(w, a, func(a *assisted.Agent) {
		a.Status.DebugInfo.State, a.Status.DebugInfo.StateInfo = state, stateInfos[state]
		a.Status.Inventory = assisted.Inventory{}
		if state != agentBinding { // ASSISTED 8.1
			a.Status.Inventory = w.inventory(a.Name)
		}
		w.setConditions(a, state, synced && (a.Spec.InstallationDiskID == "" || a.HasInventory()))
	})
}

// letAgentGo ends the deletion of an Agent. One of an installed host blocks without the annotation, for its cluster may be dead, and the
// server of one that still discovers freezes (ASSISTED 8.5c, fact 11).
func (w *world) letAgentGo(a *assisted.Agent, s *server) {
	if _, skip := a.Annotations[assisted.SkipSpokeCleanupAnnotation]; !skip && a.Installed() {
		return
	}
	s.frozen = s.infraEnv != ""
	delete(w.refused, a.Name)
	change(w, a, func(a *assisted.Agent) { a.Finalizers = nil })
}

// nextState is the state that follows.
func (w *world) nextState(a *assisted.Agent, s *server, seen string) string {
	state, bound := a.Status.DebugInfo.State, a.BoundTo(namespace, deployment)
	switch {
	case state == "", state == agentUnbinding:
		return assisted.AgentStateKnownUnbound
	case state == assisted.AgentStateKnownUnbound && bound:
		return w.bind(a, seen)
	case state == assisted.AgentStateKnownUnbound:
		return state
	case !bound && s.infraEnv != "":
		return agentUnbinding
	}
	if next, ok := s.nextState(state); ok {
		return next
	}
	return w.nextBoundState(a)
}

// nextBoundState is the state that follows of an Agent that is bound.
func (w *world) nextBoundState(a *assisted.Agent) string {
	dayOne := w.stage == assisted.ClusterStatePreparing || w.stage == assisted.ClusterStateInstalling
	switch state := a.Status.DebugInfo.State; {
	case state == agentBinding:
		return assisted.AgentStateInsufficient
	case state == assisted.AgentStateInsufficient:
		return assisted.AgentStateKnown
	case state == assisted.AgentStateKnown && a.Spec.Approved && (dayOne || w.stage == assisted.ClusterStateAddingHosts):
		return agentInstalling
	case state == agentInstalling && w.stage == stageError:
		return agentError
	case state == agentInstalling && !dayOne:
		return agentInstalled
	default:
		return state
	}
}

// bind binds an Agent if its cluster takes hosts. A bind that was refused is tried again when the Agent changes, and by nothing else
// (ASSISTED 8.4).
func (w *world) bind(a *assisted.Agent, seen string) string {
	install := w.install()
	if w.refused[a.Name] == seen {
		return assisted.AgentStateKnownUnbound
	}
	if install == nil || !assisted.AcceptsHosts(install) {
		w.refused[a.Name] = seen
		return assisted.AgentStateKnownUnbound
	}
	delete(w.refused, a.Name)
	return agentBinding
}

// inventory is what a server reports.
func (w *world) inventory(agent string) assisted.Inventory {
	h := &bmov1alpha1.BareMetalHost{}
	w.get(strings.TrimPrefix(agent, "agent-"), h)
	return assisted.Inventory{
		Interfaces:   []assisted.Interface{{Name: "eno1", MACAddress: h.Spec.BootMACAddress}},
		SystemVendor: assisted.SystemVendor{SerialNumber: h.Status.HardwareDetails.SystemVendor.SerialNumber},
		CPU:          assisted.CPU{Architecture: "x86_64"},
		Disks:        []assisted.Disk{{ID: "/dev/disk/by-id/wwn-" + h.Name, Name: "sda", Path: "/dev/sda"}},
	}
}

// setConditions are those of ASSISTED 1.2.
func (w *world) setConditions(a *assisted.Agent, state string, synced bool) {
	set := func(kind string, is bool, reason string) {
		status := corev1.ConditionFalse
		if is {
			status = corev1.ConditionTrue
		}
		c := assisted.FindCondition(a.Status.Conditions, kind)
		if c == nil {
			a.Status.Conditions = append(a.Status.Conditions, assisted.Condition{Type: kind})
			c = &a.Status.Conditions[len(a.Status.Conditions)-1]
		}
		if c.Status != status {
			c.LastTransitionTime = metav1.NewTime(w.now)
		}
		c.Status, c.Reason = status, reason
	}
	set(assisted.ConditionConnected, true, "AgentIsConnected")
	if synced {
		set(assisted.ConditionSpecSynced, true, "SyncOK")
	} else {
		set(assisted.ConditionSpecSynced, false, assisted.ReasonInputError)
	}
	unbound := []string{assisted.AgentStateKnownUnbound, agentBinding, agentUnbinding}
	set(assisted.ConditionBound, !slices.Contains(unbound, state), "AgentState")
	if ready := state == assisted.AgentStateKnown && a.Spec.Approved; ready {
		set(assisted.ConditionRequirementsMet, true, assisted.ReasonAgentIsReady)
	} else {
		set(assisted.ConditionRequirementsMet, false, "AgentNotReady")
	}
	reasons := map[string]string{agentInstalling: assisted.ReasonInstallationInProgress, agentError: assisted.ReasonInstallationFailed}
	set(assisted.ConditionInstalled, state == agentInstalled, cmp.Or(reasons[state], "InstallationNotStarted"))
}

// ignitions serves discovery ignitions, and is asked in the pass that wants one.
type ignitions struct {
	w      *world
	around func(name string, call func() error) error
}

func (i ignitions) Forget(types.NamespacedName) {}

func (i ignitions) Events() <-chan event.GenericEvent { return nil }

func (i ignitions) Lookup(_ context.Context, _ types.NamespacedName, url string) (data []byte, err error) {
	err = i.around("fetch the discovery ignition", func() error {
		if i.w.serviceAway || i.w.infraEnv(url[strings.LastIndex(url, "/")+1:]) == nil {
			return fmt.Errorf("nobody serves it")
		}
		data = []byte("ignition of " + url)
		return nil
	})
	return data, err
}
