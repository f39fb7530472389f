// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/inject"
)

const (
	namespace   = "ns"
	clusterName = "demo"
	deployment  = "cp"
	// placeLabel, on a BareMetalHost, is its name: each Machine has a place of its own, whoever is quicker.
	placeLabel    = "place"
	imagesOfHosts = "http://images.example.com/byapikey/"
)

// world is a management cluster with the bootstrap manager, and small others: Cluster API's core, Metal3, assisted-service, the manager of
// control planes, and the servers.
type world struct {
	t   *testing.T
	hub *inject.Hub
	now time.Time
	// ahead is how far the manager's clock is ahead of that of everybody else.
	ahead   time.Duration
	manager *inject.Manager

	// spec and image are those of the templates of Machines.
	spec  bootstrapv1.OpenshiftAssistedConfigSpec
	image map[string]any
	// masters and workers are how many Machines there are to be, and numbered has how many of each were made.
	masters, workers int
	numbered         map[string]int
	// places are those of control planes; the others are of workers.
	places int
	// attempt is the number of the installation, and fails makes it fail.
	attempt int
	fails   bool
	// stage is how far assisted-service is with it.
	stage string
	// imported: the cluster was installed elsewhere.
	imported bool
	// servers are the machines behind the BareMetalHosts, by their names.
	servers map[string]*server
	// refused has what was refused of an Agent: it is tried again when the Agent has changed.
	refused map[string]string
	// objects are those of a world of which there are copies.
	objects []client.Object
	// changed: something has changed since somebody has looked.
	changed bool
	// steps counts those of the story, and happens has what happens beside it at one of them.
	steps   int
	happens map[int]func()
	// until is the step before which the story does not end.
	until int
	// clock is that of what the manager remembers.
	clock *clocktesting.FakeClock
	// serviceAway and metal3Away: nobody hears of them.
	serviceAway, metal3Away bool
}

// server is a machine behind a BareMetalHost.
type server struct {
	// boots counts how often it was booted from its image, and booted is when it was last.
	boots  int
	booted time.Time
	// infraEnv is the UID of the InfraEnv whose image it runs; empty when it is off, or runs what was installed.
	infraEnv string
	// frozen: its agent was told to go away, and waits for a reboot (ASSISTED fact 11).
	frozen bool
	// dead: it never registers. broken: its installation fails. misled: it boots its image after its installation.
	dead, broken, misled bool
	// node is the name of the Node that it is, and labels are its labels.
	node   string
	labels map[string]string
}

func worldScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, assisted.AddToScheme, bootstrapv1.AddToScheme,
		bmov1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// newWorld is a world with an empty cluster of one control-plane host, whose hosts are available.
func newWorld(t *testing.T, hosts, workers int) *world {
	t.Helper()
	w := &world{
		t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), masters: 1, workers: workers, places: 1, numbered: map[string]int{},
		servers: map[string]*server{}, refused: map[string]string{}, attempt: 1,
		image: map[string]any{"url": "http://placeholder.invalid/x", "diskFormat": "live-iso"},
	}
	objects := served()
	for i := range hosts {
		h := available(i)
		objects = append(objects, h)
		w.servers[h.Name] = &server{}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: clusterName, UID: "cluster", Finalizers: []string{clusterv1.ClusterFinalizer},
	}}
	cluster.Status.Initialization.InfrastructureProvisioned = new(true)
	w.hub = w.newHub(append(objects, cluster)...)
	return w
}

// copied is another world, as this one was when its objects were listed.
func (w *world) copied(t *testing.T) *world {
	t.Helper()
	c := *w
	c.t, c.numbered, c.refused, c.servers = t, maps.Clone(w.numbered), maps.Clone(w.refused), map[string]*server{}
	for name, s := range w.servers {
		c.servers[name] = new(*s)
	}
	objects := make([]client.Object, 0, len(w.objects))
	for _, o := range w.objects {
		if o, ok := o.DeepCopyObject().(client.Object); ok {
			objects = append(objects, o)
		}
	}
	c.hub = c.newHub(objects...)
	return &c
}

func (w *world) newHub(objects ...client.Object) *inject.Hub {
	hub := inject.NewHub(worldScheme(w.t), func() time.Time { return w.now }, []client.Object{
		&bootstrapv1.OpenshiftAssistedConfig{}, &clusterv1.Machine{}, &clusterv1.Cluster{}, &hiveext.AgentClusterInstall{},
		&assisted.Agent{}, &assisted.InfraEnv{}, &bmov1alpha1.BareMetalHost{},
	}, objects)
	hub.Values = valuesIn
	return hub
}

// served are the CRDs of the kinds of others.
func served() []client.Object {
	var crds []client.Object
	for _, name := range []string{
		assisted.CRDInfraEnvs, assisted.CRDNMStateConfigs, assisted.CRDAgents, assisted.CRDAgentClusterInstalls, assisted.CRDClusterDeployments,
		metal3.CRDMachines, metal3.CRDBareMetalHosts,
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"},
		}}
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
		crds = append(crds, crd)
	}
	return crds
}

// available is an available BareMetalHost. Its disk is named in every other one.
func available(i int) *bmov1alpha1.BareMetalHost {
	h := &bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("h-%d", i)}}
	h.Labels = map[string]string{placeLabel: h.Name}
	h.UID = types.UID("host-" + h.Name)
	h.Spec.BootMACAddress = fmt.Sprintf("aa:bb:cc:00:00:%02d", i)
	h.Status.Provisioning.State = bmov1alpha1.StateAvailable
	h.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{NIC: []bmov1alpha1.NIC{{Name: "eno1", MAC: h.Spec.BootMACAddress}}}
	h.Status.HardwareDetails.SystemVendor.SerialNumber = fmt.Sprintf("serial-%d", i)
	if i%2 == 1 {
		h.Spec.RootDeviceHints = &bmov1alpha1.RootDeviceHints{DeviceName: "/dev/sda"}
	}
	return h
}

var fieldsByName = func() map[string]client.IndexerFunc {
	fields := map[string]client.IndexerFunc{}
	for _, f := range index.Fields() {
		fields[f.Name] = f.Values
	}
	return fields
}()

// valuesIn are the values by which the manager's cache finds an object by a field; without that index it would fail.
func valuesIn(o client.Object, field string) ([]string, error) {
	values, ok := fieldsByName[field]
	if !ok {
		return nil, fmt.Errorf("the cache has no index of %T by %s", o, field)
	}
	return values(o), nil
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// get reads an object and reports whether it exists.
func (w *world) get(name string, o client.Object) bool {
	w.t.Helper()
	err := w.hub.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	w.must(client.IgnoreNotFound(err))
	return err == nil
}

// change changes an object, and writes nothing when it is as it was.
func change[T client.Object](w *world, o T, do func(T)) {
	w.t.Helper()
	before, _ := o.DeepCopyObject().(client.Object)
	do(o)
	if !same(before, o) {
		w.must(w.hub.Update(context.Background(), o))
	}
}

// tell changes the status of an object, and writes nothing when it is as it was.
func tell[T client.Object](w *world, o T, do func(T)) {
	w.t.Helper()
	before, _ := o.DeepCopyObject().(client.Object)
	do(o)
	if !same(before, o) {
		w.must(w.hub.Status().Update(context.Background(), o))
	}
}

func (w *world) list(list client.ObjectList) {
	w.t.Helper()
	w.must(w.hub.List(context.Background(), list))
}

func (w *world) delete(o client.Object) {
	w.t.Helper()
	if o.GetDeletionTimestamp().IsZero() {
		w.must(client.IgnoreNotFound(w.hub.Delete(context.Background(), o)))
	}
}

func (w *world) machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	w.list(list)
	return list.Items
}

func (w *world) agents() []assisted.Agent {
	list := &assisted.AgentList{}
	w.list(list)
	return list.Items
}

func (w *world) hosts() []bmov1alpha1.BareMetalHost {
	list := &bmov1alpha1.BareMetalHostList{}
	w.list(list)
	return list.Items
}

func (w *world) infraMachines() []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(infraMachineKind)
	w.list(list)
	return list.Items
}

func (w *world) config(name string) *bootstrapv1.OpenshiftAssistedConfig {
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	if !w.get(name, config) {
		return nil
	}
	return config
}

func (w *world) install() *hiveext.AgentClusterInstall {
	install := &hiveext.AgentClusterInstall{}
	if !w.get(deployment, install) {
		return nil
	}
	return install
}

func (w *world) clusterDeployment() *hivev1.ClusterDeployment {
	d := &hivev1.ClusterDeployment{}
	if !w.get(deployment, d) {
		return nil
	}
	return d
}

func (w *world) cluster() *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{}
	if !w.get(clusterName, cluster) {
		return nil
	}
	return cluster
}

// secretValue is a value of a Secret.
func (w *world) secretValue(name, key string) (string, bool) {
	secret := &corev1.Secret{}
	if !w.get(name, secret) {
		return "", false
	}
	value, ok := secret.Data[key]
	return string(value), ok
}
