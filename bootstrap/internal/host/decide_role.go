// SPDX-License-Identifier: Apache-2.0

package host

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// roleOf is the role of a Machine's host, which the Machine's labels tell: Cluster API's own of a control plane, or that of an arbiter,
// which core puts on the Node too.
func roleOf(machine *clusterv1.Machine) string {
	_, arbiter := machine.Labels[bootstrapv1.ArbiterLabel]
	switch {
	case util.IsControlPlaneMachine(machine):
		return assisted.RoleMaster
	case arbiter:
		return assisted.RoleArbiter
	default:
		return assisted.RoleWorker
	}
}

// closedFact says why a host of a role may not be bound now.
func closedFact(s *scope, agent *assisted.Agent, role string) fact.Fact {
	switch {
	case role != assisted.RoleArbiter || s.install == nil:
	case !assisted.TakesArbiter(s.install):
		return fact.Waiting(
			bootstrapv1.ArbiterNotTakenReason,
			"Agent %s waits, registered and unbound: its Machine has the label %s, and the control plane "+
				"has no spec.install.twoNode: Arbiter; delete Machine %s, or take the label off its template",
			agent.Name,
			bootstrapv1.ArbiterLabel,
			s.machine.Name,
		)
	case assisted.PhaseOf(s.install) == assisted.PhaseCompleted:
		return fact.Waiting(
			bootstrapv1.ArbiterNotTakenReason,
			"Agent %s waits, registered and unbound: the cluster is installed, and an arbiter takes "+
				"part in the first installation only; delete Machine %s",
			agent.Name,
			s.machine.Name,
		)
	}
	return fact.Waiting(
		bootstrapv1.WaitingForClusterReason, "Agent %s waits, registered and unbound, until the cluster takes %s hosts", agent.Name, role,
	)
}

// fencingSecret is the name of the Secret by which a control-plane host of a two-node cluster is powered off. It is missing where a cluster
// needs one and the host does not name it: without it the installation would fail, or give a cluster that loses its quorum with either
// host.
func fencingSecret(s *scope, role string) (name string, missing bool) {
	if role != assisted.RoleMaster || !assisted.NeedsFencing(s.install) {
		return "", false
	}
	if s.host != nil {
		name = s.host.Annotations[bootstrapv1.FencingCredentialsAnnotation]
	}
	return name, name == ""
}

// noFencingFact says what a host without a Secret for fencing waits for.
func noFencingFact(s *scope, agent *assisted.Agent) fact.Fact {
	host := "the host"
	if s.host != nil {
		host = "BareMetalHost " + s.host.Name
	}
	return fact.Waiting(
		bootstrapv1.FencingCredentialsMissingReason,
		"Agent %s is not bound: two nodes with fencing need credentials to power %s off; "+
			"put them in a Secret with the keys address, username and password, and name it in annotation %s of the BareMetalHost",
		agent.Name,
		host,
		bootstrapv1.FencingCredentialsAnnotation,
	)
}
