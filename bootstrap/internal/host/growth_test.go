// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"math"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index/indextest"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// worstGrowth is how the cost of all hosts of a namespace may grow: with their number to the power of this.
const worstGrowth = 1.1

// crowd is a namespace of hosts that have all been booted, the workers of one cluster. Each of their servers has a port to its BMC with the
// same address.
type crowd struct {
	*indextest.Reader
	scopes []*scope
	hosts  []*bmov1alpha1.BareMetalHost
	agents []*assisted.Agent
}

func newCrowd(n int) *crowd {
	c := &crowd{Reader: indextest.NewReader(&hiveext.AgentClusterInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}},
	})}
	for i := range n {
		s := discovered()
		name := fmt.Sprintf("m-%04d", i)
		worker(s)
		s.agents, s.hosts, s.install = nil, nil, nil
		s.machine.Name, s.machine.UID, s.machine.Spec.ClusterName = name, types.UID("uid-"+name), "demo"
		s.machine.Spec.InfrastructureRef.Name = name
		s.machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: name,
		}
		s.config.Name, s.config.Annotations = name, map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}
		s.host.Name, s.host.Spec.BootMACAddress = "host-"+name, mac(i, 0)
		s.host.Spec.ConsumerRef = &corev1.ObjectReference{Kind: metal3.MachineKind, Name: name, Namespace: "ns"}
		s.host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{
			SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: "SN-" + name},
			NIC:          []bmov1alpha1.NIC{{MAC: mac(i, 0)}, {MAC: mac(i, 1)}, {MAC: "02:00:00:00:00:01"}},
		}
		agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a-" + name, CreationTimestamp: later, Labels: map[string]string{assisted.InfraEnvLabel: "demo-x"},
		}}
		agent.Status.Inventory.SystemVendor.SerialNumber = "SN-" + name
		agent.Status.Inventory.Interfaces = []assisted.Interface{
			{MACAddress: mac(i, 0)}, {MACAddress: mac(i, 1)}, {MACAddress: "02:00:00:00:00:01"},
		}
		c.scopes, c.hosts, c.agents = append(c.scopes, s), append(c.hosts, s.host), append(c.agents, agent)
		for _, o := range []client.Object{s.machine, s.config, s.host} {
			c.Put(o)
		}
	}
	return c
}

func mac(host, port int) string {
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", host/256, host%256, port)
}

// register registers all Agents, claimed or not.
func (c *crowd) register(claimed bool) {
	for i, agent := range c.agents {
		registered := agent.DeepCopy()
		if claimed {
			registered.Annotations = map[string]string{bootstrapv1.ClaimAnnotation: c.scopes[i].claim()}
		}
		c.Put(registered)
	}
}

// TestGrowth: what all passes of the hosts of a namespace read, and whom all events of their Agents and BareMetalHosts wake, grows with
// their number, however many Agents have registered. It counts objects, not seconds.
func TestGrowth(t *testing.T) {
	few, many := 100, 500
	for name, stand := range map[string]func(*crowd){
		"nobody has registered": func(*crowd) {},
		"all have registered":   func(c *crowd) { c.register(false) },
		"all are claimed":       func(c *crowd) { c.register(true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			readFew, wokenFew := costOf(t, few, stand)
			readMany, wokenMany := costOf(t, many, stand)
			t.Logf("%d hosts: %d objects read, %d woken; %d hosts: %d objects read, %d woken", few, readFew, wokenFew, many, readMany, wokenMany)
			exponent := func(a, b int) float64 { return math.Log(float64(b)/float64(a)) / math.Log(float64(many)/float64(few)) }
			g.Expect(exponent(readFew, readMany)).To(BeNumerically("<=", worstGrowth))
			g.Expect(exponent(wokenFew, wokenMany)).To(BeNumerically("<=", worstGrowth))
		})
	}
}

// costOf is how many objects are read by one pass for each host and for the mapping of an event of each Agent and host, and how many
// configs those events wake.
func costOf(t *testing.T, n int, stand func(*crowd)) (read, woken int) {
	t.Helper()
	c := newCrowd(n)
	stand(c)
	c.Returned = 0
	reconciler := &Reconciler{Client: readOnly{Reader: c}}
	mapper := mapping.Mapper{Client: c}
	for i, s := range c.scopes {
		for _, observe := range []func(*scope) error{
			func(s *scope) error { return reconciler.observeAgents(t.Context(), s) },
			func(s *scope) error { return reconciler.observeInstall(t.Context(), s) },
		} {
			NewWithT(t).Expect(observe(s)).To(Succeed())
		}
		NewWithT(t).Expect(s.install).NotTo(BeNil())
		d := decide(s)
		NewWithT(t).Expect(d.recognized.Reason).NotTo(BeElementOf(bootstrapv1.AgentNotRecognizedReason, bootstrapv1.DuplicateSerialNumberReason))
		woken += len(mapper.FromAgent(t.Context(), c.agents[i])) + len(mapper.FromAnyHost(t.Context(), c.hosts[i]))
	}
	return c.Returned, woken
}

// readOnly is a client that only reads.
type readOnly struct {
	client.Client
	client.Reader
}

// Get implements client.Client.
func (r readOnly) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return r.Reader.Get(ctx, key, o, opts...)
}

// List implements client.Client.
func (r readOnly) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.Reader.List(ctx, list, opts...)
}
