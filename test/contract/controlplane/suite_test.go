// SPDX-License-Identifier: Apache-2.0

// Package controlplane shows the rules between Cluster API and the control plane provider on one highly available cluster: while it is
// installed, changed, cut off and deleted, in a world with the real core.
package controlplane

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	"github.com/capi-openshift/agent-providers/test/security"
)

const (
	namespace   = "contract"
	clusterName = "demo"
	apiAddress  = "127.30.2.5"
	replicas    = 3
	workers     = 1

	// speed makes an installation take some seconds of simulated time.
	speed = 3

	installTimeout = 4 * time.Minute
	deleteTimeout  = 3 * time.Minute
	settleTimeout  = time.Minute
	// gracePeriod is the shortest one that the manager takes; detectTimeout covers it.
	gracePeriod   = 2 * time.Minute
	detectTimeout = gracePeriod + settleTimeout
	poll          = 250 * time.Millisecond
	// quiet is how long nothing may happen where nothing is to happen.
	quiet = 3 * time.Second
)

// TestContractControlPlane tells one story: every part goes on where the one before it left the cluster.
func TestContractControlPlane(t *testing.T) {
	s := newStory(t)
	t.Run("CP-68 KCP-2 the finalizer is the first thing that the manager writes", s.finalizerFirst)
	t.Run("CP-36 KCP-4 every Machine is created once, and all before any host has its data", s.createdOnce)
	t.Run("CP-30 CP-31 CP-34 Machine, infrastructure machine and config share name and labels", s.labels)
	t.Run("CP-32 CORE-9 control-plane Machines are controlled from the beginning and never the Cluster's", s.controllers)
	t.Run("CP-33 CORE-2 the Machine becomes the only owner of what was made for it", s.owners)
	t.Run("CP-33 infrastructure machines tell their template", s.origin)
	t.Run("CP-37 the Cluster owns the infrastructure template", s.templateOwner)
	t.Run("CORE-1 every step of a Machine reports while the first one waits", s.stepsReport)
	t.Run("CORE-3 CORE-4 provider ID, addresses and Node come from infrastructure and installed cluster", s.nodes)
	t.Run("CP-44 CP-45 CORE-6 Machines are up to date, ready and available at once", s.machinesReady)

	t.Run("CP-52 CP-55 CP-58 CORE-17 the kubeconfig Secret is what core reads, and the only one of its kind", s.kubeconfigSecret)
	t.Run("CP-54 the kubeconfig works by itself", s.kubeconfigWorks)
	t.Run("CP-53 it holds a token of the installed cluster, which trusts what the cluster tells", s.kubeconfigToken)
	t.Run("CP-53 KCP-28 another token takes the place of one that is due, and of one that was revoked", s.tokenRenewed)
	t.Run("CP-53 CORE-15 a connection outlives three renewals and new authorities, and comes back by itself after a revocation", s.reconnects)
	t.Run("CP-56 the kubeconfig was there before any infrastructure machine was ready", s.kubeconfigEarly)
	t.Run("CP-50 CP-51 KCP-5 the control plane was initialized once, after the installation", s.initializedOnce)
	t.Run("CORE-12 core sees it initialized and writes no kubeconfig of its own", s.coreWritesNoKubeconfig)
	t.Run("CORE-10 CORE-11 the Cluster owns the control plane and takes the endpoint from the infrastructure", s.clusterOwner)
	t.Run("CP-10 CP-80 CP-81 CP-83 CORE-13 the Cluster shows availability, progress, counters and versions", s.clusterStatus)
	t.Run("CORE-15 core is connected through the Secret", s.connected)

	t.Run("CORE-30 CP-82 a health check marks a Machine, which stays while another host restarts", s.healthCheck)
	t.Run("CP-40 CP-41 CP-42 CP-43 CORE-5 changes of the template reach Machines and Nodes in place, and go again", s.propagation)
	t.Run("CP-43 CORE-6 a readiness gate counts for the Machines that exist", s.readinessGate)
	t.Run("CP-80 CP-82 KCP-1 KCP-29 a change of etcd's health is seen at once", s.etcdHealth)

	s.cutOff(t)
	t.Run("CP-45 CP-81 a Machine of another version is out of date, on the Cluster too, and not replaced", s.outOfDate)
	t.Run("CP-39 KCP-27 a Machine that lost its controller is adopted", s.adoption)
	t.Run("CP-60 a paused Cluster is left alone", s.paused)
	t.Run("CP-50 CP-80 CP-82 CORE-12 CORE-16 a lost API is told after the grace period, and unsets nothing", s.apiLost)
	t.Run("CORE-15 KCP-1 its return is seen at once", s.apiBack)

	s.learnSecrets(t)
	s.beginDeletion(t)
	t.Run("CP-62 CORE-14 the control plane is deleted after the workers and before the infrastructure", s.workersFirst)
	t.Run("CP-60 a paused control plane is not taken apart", s.pausedWhileDeleting)
	s.endDeletion(t)
	t.Run("CP-62 KCP-25 all Machines are deleted at once, then what the installation needed", s.deletionOrder)
	t.Run("CP-81 scaling down was told while Machines were deleted", s.scalingWasTold)
	t.Run("CORE-7 a Machine waits for its Agent, its infrastructure and its config, one after the other", s.machineDeletionOrder)
	t.Run("CORE-8 no Node of a cluster that goes away is drained or deleted", s.nodesAreLeft)
	t.Run("CP-53 no log of the managers holds a credential, whatever verbosity they are asked for", s.noSecretIsLogged)
}

// story is the cluster and what was seen of it.
type story struct {
	world *sandbox.World

	mu sync.Mutex
	// These are all versions of Machines and control planes that the watches have shown, and when the first infrastructure was ready.
	seenMachines      []*clusterv1.Machine
	seenControlPlanes []*controlplanev1.OpenshiftAssistedControlPlane
	infraReady        time.Time
	// secrets are those that there were.
	secrets *security.Secrets
}

// newStory starts the world and installs the cluster.
func newStory(t *testing.T) *story {
	t.Helper()
	g := NewWithT(t)
	ctrl.SetLogger(klog.Background())
	s := &story{secrets: security.NewSecrets()}
	world, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{Progress: t.Output(), Speed: speed, Adjust: adjust})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(world.Stop()).To(Succeed()) })
	s.world = world
	world.Watch.OnChange(s.observe)
	g.Expect(world.CreateInputs(t.Context(), namespace, replicas+workers)).To(Succeed())
	request := sandbox.ClusterRequest{Namespace: namespace, Name: clusterName, Topology: sandbox.HA, Workers: workers, Address: apiAddress}
	g.Expect(world.ApplyCluster(t.Context(), request)).To(Succeed())
	g.Expect(world.AwaitCluster(t.Context(), s.key(), installTimeout, "the cluster", world.Running(s.key(), replicas+workers))).To(Succeed())
	return s
}

// adjust asks the managers for all logs that there are, and for the shortest grace period.
func adjust(_ *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
	spec.Args = append(spec.Args, "--v=10", "--vmodule=request=10,round_trippers=10")
	if spec.Name == localcontrolplane.ControlPlaneManager().Name {
		spec.Args = append(spec.Args, "--remote-conditions-grace-period="+gracePeriod.String())
	}
}

func (s *story) observe(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *clusterv1.Machine:
		s.seenMachines = append(s.seenMachines, o.DeepCopy())
		if s.infraReady.IsZero() && ptr.Deref(o.Status.Initialization.InfrastructureProvisioned, false) {
			s.infraReady = time.Now()
		}
	case *controlplanev1.OpenshiftAssistedControlPlane:
		s.seenControlPlanes = append(s.seenControlPlanes, o.DeepCopy())
	}
}

// history returns every version of the control-plane Machines and of the control plane that was seen.
func (s *story) history() ([]*clusterv1.Machine, []*controlplanev1.OpenshiftAssistedControlPlane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	machines := slices.DeleteFunc(slices.Clone(s.seenMachines), func(m *clusterv1.Machine) bool {
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		return !controlPlane
	})
	return machines, slices.Clone(s.seenControlPlanes)
}

func (s *story) key() types.NamespacedName { return named(clusterName) }

// install names the control plane, and so its ClusterDeployment and AgentClusterInstall.
func (s *story) install() types.NamespacedName { return sandbox.InstallKey(s.key()) }

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// get reads an object past every cache.
func (s *story) get(g Gomega, name string, o client.Object) {
	g.Expect(s.world.Client.Get(context.Background(), named(name), o)).To(Succeed())
}

func (s *story) cluster(g Gomega) *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{}
	s.get(g, clusterName, cluster)
	return cluster
}

func (s *story) controlPlane(g Gomega) *controlplanev1.OpenshiftAssistedControlPlane {
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	s.get(g, s.install().Name, controlPlane)
	return controlPlane
}

// machines are the control-plane Machines, by name.
func (s *story) machines(g Gomega) []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	selector := client.MatchingLabels{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachineControlPlaneLabel: ""}
	g.Expect(s.world.Client.List(context.Background(), list, client.InNamespace(namespace), selector)).To(Succeed())
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// companions are the infrastructure machine and the config of a Machine.
func (s *story) companions(g Gomega, machine *clusterv1.Machine) []client.Object {
	infraMachine, config := newMetal3(metal3.MachineKind), &bootstrapv1.OpenshiftAssistedConfig{}
	s.get(g, machine.Spec.InfrastructureRef.Name, infraMachine)
	s.get(g, machine.Spec.Bootstrap.ConfigRef.Name, config)
	return []client.Object{infraMachine, config}
}

func newMetal3(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(metal3.InfrastructureGroup + "/v1beta1")
	object.SetKind(kind)
	return object
}

// change patches the control plane.
func (s *story) change(g Gomega, change func(*controlplanev1.OpenshiftAssistedControlPlane)) {
	controlPlane := s.controlPlane(g)
	s.update(g, controlPlane, func() { change(controlPlane) })
}

// eventually waits until the assertions hold.
func eventually(t *testing.T, timeout time.Duration, assertions func(Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(assertions).WithContext(t.Context()).WithTimeout(timeout).WithPolling(poll).Should(Succeed())
}

// consistently checks that the assertions hold for a while.
func consistently(t *testing.T, assertions func(Gomega)) {
	t.Helper()
	NewWithT(t).Consistently(assertions).WithContext(t.Context()).WithTimeout(quiet).WithPolling(poll).Should(Succeed())
}

var writeVerbs = []string{"create", "update", "patch", "delete"}

// writes returns the successful writes in the cluster's namespace that match, in their order. A dry run writes nothing.
func (s *story) writes(g Gomega, match func(*auditv1.Event) bool) []*auditv1.Event {
	var events []*auditv1.Event
	g.Expect(sandbox.ReadAudit(s.world.Management.AuditLog(), func(e *auditv1.Event) {
		if e.ObjectRef != nil && e.ObjectRef.Namespace == namespace && slices.Contains(writeVerbs, e.Verb) &&
			e.ResponseStatus != nil && e.ResponseStatus.Code < 300 && !strings.Contains(e.RequestURI, "dryRun=") && match(e) {
			events = append(events, e)
		}
	})).To(Succeed())
	return events
}

// by matches the writes of a user to a resource; an empty user is anybody.
func by(user, verb, resource string) func(*auditv1.Event) bool {
	return func(e *auditv1.Event) bool {
		return (user == "" || e.User.Username == user) && e.Verb == verb && e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == ""
	}
}

// names are those of the objects of writes.
func names(events []*auditv1.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.ObjectRef.Name)
	}
	return out
}

// labelledSecrets are the Secrets of the cluster's namespace that have the Cluster's label.
func (s *story) labelledSecrets(g Gomega) []corev1.Secret {
	list := &corev1.SecretList{}
	g.Expect(s.world.Client.List(context.Background(), list, client.InNamespace(namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: clusterName})).
		To(Succeed())
	return list.Items
}
