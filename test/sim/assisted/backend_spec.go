// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// hostView copies out what an Agent shows of its host.
func (b *backend) hostView(id string) (hostView, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil {
		return hostView{}, false
	}
	view := hostView{
		of: h, id: h.id, state: h.state, info: h.info, kind: h.kind, role: h.effectiveRole(), stage: h.stageName(),
		clusterID: h.clusterID, bootstrap: h.bootstrap, validated: h.validated, failing: slices.Clone(h.failing),
		stages: slices.Clone(h.stages), percent: stagePercent(h.stages, h.stage), inventory: h.inventory,
		disk:     h.installationDisk(),
		diskGone: h.lostDisk && h.inventory == nil, infraEnv: h.infraEnv, created: h.created,
	}
	if h.deprovision != nil {
		copied := *h.deprovision
		view.deprovision = &copied
	}
	if c := b.clusters[h.clusterID]; c != nil {
		view.cluster, view.install = c.cd, c.aci
	}
	if h.kind == kindAddition && h.state == hostInstallingInProgress && view.stage == StageDone {
		view.percent = stagePercent(h.stages, slices.Index(h.stages, StageRebooting))
	}
	view.approvedCSRs = h.nodeAddition.approvedAt
	view.frozenProgress = h.joins() && !h.reached
	return view, true
}

// markCreated records that a host's Agent exists.
func (b *backend) markCreated(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil {
		h.created = true
	}
}

// takeMove returns the Agent that a host had in another InfraEnv, once.
func (b *backend) takeMove(id string) (types.NamespacedName, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || h.moved == nil {
		return types.NamespacedName{}, false
	}
	old := *h.moved
	h.moved = nil
	return old, true
}

// bindOnce binds a host unless the very same request was refused before and nothing has changed since.
func (b *backend) bindOnce(id, signature string, cd types.NamespacedName) error {
	if err := b.refused(id, signature); err != nil {
		return err
	}
	err := b.bind(id, cd)
	if err != nil && isUserError(err) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if h := b.hosts[id]; h != nil {
			h.refusal = refusal{err: err, signature: signature, revision: h.revision}
		}
	}
	return err
}

func (b *backend) refused(id, signature string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || h.refusal.signature != signature || h.refusal.revision != h.revision {
		return nil
	}
	return h.refusal.err
}

// applySpec pushes what an Agent asks for, as far as the host's state takes it. Outside those states everything but the
// approval is ignored without an error (ASSISTED fact 3).
func (b *backend) applySpec(id string, spec aiv1.AgentSpec) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil {
		return nil
	}
	if !isOneOf(h.state, updatableStates) {
		b.setApproved(h, spec.Approved)
		return nil
	}
	if err := b.takeDisk(h, spec); err != nil {
		return err
	}
	if err := checkInstallation(spec); err != nil {
		return err
	}
	if spec.Hostname != "" && spec.Hostname != h.hostname {
		h.hostname = spec.Hostname
		b.touchHost(h)
	}
	if spec.Role != h.role {
		h.role = spec.Role
		b.touchHost(h)
	}
	h.fenced = spec.FencingCredentialsSecretRef != ""
	if !maps.Equal(spec.NodeLabels, h.nodeLabels) {
		h.nodeLabels = maps.Clone(spec.NodeLabels)
		b.touchHost(h)
	}
	b.setApproved(h, spec.Approved)
	return nil
}

func (b *backend) setApproved(h *host, approved bool) {
	if h.approved != approved {
		h.approved = approved
		b.touchHost(h)
	}
}

// setSynced records whether an Agent's spec is applied; a cluster does not start while one is not.
func (b *backend) setSynced(id string, synced bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil && h.specSynced != synced {
		h.specSynced = synced
		if c := b.clusters[h.clusterID]; c != nil {
			b.touchCluster(c)
		}
	}
}

// finishDeprovision forgets the cluster that a host left.
func (b *backend) finishDeprovision(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil {
		h.deprovision = nil
		b.touchHost(h)
	}
}

// clusterView copies out what an AgentClusterInstall shows of its cluster.
func (b *backend) clusterView(cd types.NamespacedName) (clusterView, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clusters[b.byCD[cd]]
	if c == nil {
		return clusterView{}, false
	}
	view := clusterView{
		id: c.id, state: c.state, info: c.info, openshiftID: c.openshift, failing: slices.Clone(c.failing),
		faults: maps.Clone(b.faults.clusters[c.aci]), tally: c.tally(b),
		spec: c.spec, prepared: c.prepared, unprepared: c.unprepared, progress: c.progress, hasMetadata: !c.installingSince.IsZero(),
		complete: c.state == clusterAddingHosts && !c.installingSince.IsZero(),
	}
	view.hasKubeconfig = view.hasMetadata && b.now().Sub(c.installingSince) >= b.faults.kubeconfigDelay[c.aci]
	for _, h := range c.members(b) {
		if h.inventory != nil && view.hasMetadata && c.spec.ControlPlaneAgents == 1 && h.kind == kindHost {
			view.nodeIPs = append(view.nodeIPs, addresses(h.inventory)...)
		}
	}
	return view, true
}
