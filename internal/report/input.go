// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Input is all that a Report is made of.
type Input struct {
	// Now is when the objects were read: what goes on is drawn until then.
	Now time.Time
	// Cluster is always there.
	Cluster *clusterv1.Cluster
	// ControlPlane and Install are nil when they do not exist.
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	Install      *hiveext.AgentClusterInstall
	Machines     []clusterv1.Machine
	Configs      []bootstrapv1.OpenshiftAssistedConfig
	// Infrastructure has the Metal3Machines.
	Infrastructure []unstructured.Unstructured
	// Hosts and Agents are those of the whole namespace; the Report has those of the cluster.
	Hosts     []bmov1alpha1.BareMetalHost
	Agents    []assisted.Agent
	InfraEnvs []assisted.InfraEnv
	Events    []corev1.Event
	// Unread says what could not be read, and why.
	Unread []string
	// History is what somebody saw who watched the cluster; nil when nobody did.
	History *History
	// Writes are the writes of the managers; empty when nobody counted them.
	Writes []Writer
	// Docs is where the documentation is, without a slash at its end. Default: DefaultDocs.
	Docs string
}

// History is what objects do not tell when they are read once: the exact times, Machines that are gone, and faults that have passed.
type History struct {
	Machines []PastMachine
	Faults   []PastFault
}

// PastMachine is when a Machine passed its milestones.
type PastMachine struct {
	UID    types.UID
	Name   string
	Passed map[Phase]time.Time
	// Created is when the Machine was first seen.
	Created time.Time
}

// PastFault is a condition that was False for a reason that is a fault.
type PastFault struct {
	Kind, Name                 string
	Condition, Reason, Message string
	From, To                   time.Time
	// Count is how many times it was so.
	Count int
}

// Writer is somebody who wrote to the management cluster.
type Writer struct {
	Name   string
	Writes []Write
}

// Write is one kind of write and how often it happened.
type Write struct {
	Verb, Resource string
	Count          int
}
