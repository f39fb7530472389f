// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// host is the backend's row of a host that registered.
type host struct {
	id        string
	infraEnv  types.NamespacedName
	clusterID string
	kind      string
	state     string
	info      string
	since     time.Time
	revision  int64

	registered  time.Time
	order       int
	lastSeen    time.Time
	inventory   *HostHardware
	inventoryAt time.Time
	validated   bool
	failing     []string

	// What Agent.spec has pushed so far.
	approved      bool
	role          string
	suggestedRole string
	hostname      string
	nodeLabels    map[string]string
	disk          string
	fenced        bool
	specSynced    bool
	lostDisk      bool
	moved         *types.NamespacedName

	stages       []string
	stage        int
	stageEntered time.Time
	bootstrap    bool
	nodeAddition nodeAddition
	// reached says that the service has reached the cluster of a day-2 host when it last looked for its Node.
	reached bool

	deprovision *deprovision
	refusal     refusal
	// created says that the Agent has been created once: if it is gone, somebody deleted it.
	created bool
}

// refusal is a bind that the service refused as the user's mistake. It is not tried again until the Agent or the host's
// state changes (ASSISTED 8.4).
type refusal struct {
	err       error
	signature string
	revision  int64
}

// nodeAddition is how far a day-2 host came after its reboot: the CSRs of its kubelet approved.
type nodeAddition struct {
	approvedAt time.Time
}

// deprovision remembers which Node to clean up after an unbind.
type deprovision struct {
	cluster types.NamespacedName
	node    string
	message string
}

func (h *host) key() types.NamespacedName {
	return types.NamespacedName{Namespace: h.infraEnv.Namespace, Name: h.id}
}

func (h *host) unbound() bool { return strings.HasSuffix(h.state, "-unbound") }

// nodeName is the name that the host's kubelet will register: the requested hostname, else its own.
func (h *host) nodeName() string {
	if h.hostname != "" || h.inventory == nil {
		return h.hostname
	}
	return h.inventory.Hostname
}

func (h *host) stageName() string {
	if h.stage < 0 || h.stage >= len(h.stages) {
		return ""
	}
	return h.stages[h.stage]
}

// effectiveRole is what Agent.status.role shows.
func (h *host) effectiveRole() string {
	switch {
	case h.role != "" && h.role != roleAuto:
		return h.role
	case h.suggestedRole != "":
		return h.suggestedRole
	}
	return roleAuto
}

func (b *backend) setHost(h *host, state string) { b.setHostInfo(h, state, stateInfos[state]) }

func (b *backend) setHostInfo(h *host, state, info string) {
	if h.state == state && h.info == info {
		return
	}
	if h.state != state {
		h.since = b.now()
	}
	h.state, h.info = state, info
	b.touchHost(h)
}

// monitorHost is one pass of the host monitor.
func (b *backend) monitorHost(h *host, now time.Time) {
	if b.monitorSilence(h, now) {
		return
	}
	switch h.state {
	case hostDiscovering, hostInsufficient, hostKnown, hostDisconnected,
		hostDiscoveringUnbound, hostInsufficientUnbound, hostKnownUnbound, hostDisconnectedUnbound:
		b.refreshReadiness(h, now)
	case hostPreparing, hostPreparingSuccessful, hostPreparingFailed, hostInstalling, hostInstallingInProgress, hostInstallingPending:
		b.monitorInstall(h, now)
	case hostReclaiming, hostReclaimingRebooting:
		b.reclaim(h, now)
	case hostCancelled:
		if now.Sub(h.since) >= b.opts.Durations.Monitor {
			b.setHost(h, hostUnbindingPending)
		}
	}
}

// monitorSilence turns a host that stopped talking into a disconnected one. It reports whether it did.
func (b *backend) monitorSilence(h *host, now time.Time) bool {
	if now.Sub(h.lastSeen) <= b.opts.Durations.Heartbeat {
		return false
	}
	switch h.state {
	case hostDiscovering, hostInsufficient, hostKnown:
		b.setHost(h, hostDisconnected)
	case hostDiscoveringUnbound, hostInsufficientUnbound, hostKnownUnbound:
		b.setHost(h, hostDisconnectedUnbound)
	case hostDisconnected, hostDisconnectedUnbound:
	case hostPreparing, hostPreparingSuccessful:
		b.setHostInfo(h, hostDisconnected, "Host failed to install due to timeout while connecting to host during the preparation phase.")
	case hostInstalling:
		b.failHost(h, "Host failed to install because it stopped communicating with the installation service")
	case hostInstallingInProgress:
		if h.rebooted() {
			return false
		}
		b.failHost(h, "Host failed to install due to timeout while connecting to host during the installation phase.")
	default:
		return false
	}
	return true
}

// rebooted says whether the host has left the discovery image for its disk.
func (h *host) rebooted() bool {
	at := slices.Index(h.stages, StageRebooting)
	return at >= 0 && h.stage >= at
}

// refreshReadiness moves a host that is not installing between discovering, insufficient and known.
func (b *backend) refreshReadiness(h *host, now time.Time) {
	if b.startPreparing(h) {
		return
	}
	if h.inventory == nil {
		if isOneOf(h.state, []string{hostDisconnected, hostDisconnectedUnbound}) {
			b.setHost(h, h.variant(hostDiscovering))
		}
		return
	}
	b.suggestRole(h)
	failing, blocked := b.validateHost(h, now)
	if !slices.Equal(h.failing, failing) || !h.validated {
		h.failing, h.validated = failing, true
		b.touchHost(h)
	}
	switch {
	case len(failing) == 0 && !blocked && h.state == hostKnown:
		b.startAddition(h)
	case len(failing) == 0 && !blocked:
		b.setHost(h, h.variant(hostKnown))
	case h.kind == kindAddition && !h.unbound():
		b.setHostInfo(h, hostInsufficient, insufficientInfo(nil))
	default:
		b.setHostInfo(h, h.variant(hostInsufficient), insufficientInfo(failing))
	}
}

// startPreparing takes a ready host into its cluster's installation. It reports whether it did.
func (b *backend) startPreparing(h *host) bool {
	c := b.clusters[h.clusterID]
	if c == nil || c.state != clusterPreparing || h.kind != kindHost || h.state != hostKnown {
		return false
	}
	b.setHost(h, hostPreparing)
	return true
}

// variant returns the unbound form of a state when the host is unbound.
func (h *host) variant(state string) string {
	if h.clusterID == "" {
		return state + "-unbound"
	}
	return state
}

func insufficientInfo(failing []string) string {
	reversed := slices.Clone(failing)
	slices.Reverse(reversed)
	return "Host cannot be installed due to following failing validation(s): " + strings.Join(reversed, " ; ")
}

// validateHost returns the messages of the failing checks. blocked holds the host back although none fails: fewer than
// the needed control-plane hosts have reported (ASSISTED fact 4).
func (b *backend) validateHost(h *host, now time.Time) (failing []string, blocked bool) {
	failing = b.hostFaults(h).validationMessages()
	if h.clusterID == "" {
		return failing, false
	}
	c := b.clusters[h.clusterID]
	age := now.Sub(h.inventoryAt)
	if c == nil {
		return failing, true
	}
	if c.hostnameTaken(b, h) {
		failing = append(failing, "Hostname "+h.nodeName()+" is not unique in cluster")
	}
	if h.kind == kindAddition {
		if age < b.opts.Durations.Validation || !b.opts.Workload.Status(c.cd).APIUp {
			failing = append(failing, "Ignition is not yet available, pending API connectivity")
		}
		return failing, false
	}
	quorum := !c.quorumSince.IsZero()
	return append(failing, b.pendingChecks(c, age, now)...), !quorum
}

// pendingChecks are the checks that need the host to have spoken for a while: first the time, then, once there are
// enough hosts, their connectivity.
func (b *backend) pendingChecks(c *cluster, age time.Duration, now time.Time) []string {
	const ntp = "Host couldn't synchronize with any NTP server"
	full := b.opts.Durations.Validation
	early := age < full/2
	if c.spec.ControlPlaneAgents == 1 {
		early = age < full
	}
	connecting := c.spec.ControlPlaneAgents > 1 && !c.quorumSince.IsZero() && (age < full || now.Sub(c.quorumSince) < full)
	const connectivity = "No connectivity to the majority of hosts in the cluster"
	switch {
	case connecting && early:
		return []string{connectivity, "Missing MTU report information", ntp}
	case connecting:
		return []string{connectivity}
	case early:
		return []string{ntp}
	}
	return nil
}

// suggestRole decides the role of a host that was not given one.
func (b *backend) suggestRole(h *host) {
	suggested := h.suggestedRole
	c := b.clusters[h.clusterID]
	switch {
	case c == nil:
		suggested = ""
	case h.kind == kindAddition:
		suggested = roleWorker
	case suggested == "" || c.state != clusterReady:
		// A cluster that has become ready with its roles keeps them until it is insufficient again (trace
		// extra-agent-blocks).
		suggested = c.roleFor(b, h)
	}
	if suggested != h.suggestedRole {
		h.suggestedRole = suggested
		b.touchHost(h)
	}
}

// failHost ends a host's installation.
func (b *backend) failHost(h *host, info string) { b.setHostInfo(h, hostError, info) }
