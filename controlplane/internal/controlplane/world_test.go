// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload/workloadtest"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/test/inject"
)

const (
	namespace   = "ns"
	clusterName = "c"
	kubelet     = "v1.33.4"
	clusterID   = "3c1d"
)

var infraGroup = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2"}

// servedCRDs is a gate that a test opens by hand.
type servedCRDs struct{ missing []string }

func (g *servedCRDs) Missing(crds ...string) []string {
	var missing []string
	for _, crd := range crds {
		for _, m := range g.missing {
			if m == crd {
				missing = append(missing, crd)
			}
		}
	}
	return missing
}

// world is a management cluster with the reconciler under test and small fakes of the other controllers.
type world struct {
	t      *testing.T
	hub    *inject.Hub
	client client.Client // The hub, for all but the manager of a story.
	r      *Reconciler
	events *events.FakeRecorder
	gate   *servedCRDs
	api    struct {
		workloadtest.Identity
		workloadtest.Health
		upgrades workloadtest.Upgrades
	}
	// credentials are what the installed cluster takes and issues.
	credentials *workloadtest.Credentials
	// installed is the etcd of the installed cluster.
	installed *worldEtcd
	now       time.Time
	// stage is how far the faked assisted-service is with the installation.
	stage int
	// serves is the UID of the AgentClusterInstall that it knows.
	serves types.UID
	// unbootable are the names of Machines whose hosts never register.
	unbootable map[string]bool
	// failAt makes the installation fail at a stage; 0 is never.
	failAt int
	// forgetful: the service has lost how far the installation is.
	forgetful bool
	// templates is the number of infrastructure templates that a user has made since.
	templates int
	// healthCheck: there is a MachineHealthCheck. darkSince is since when a Node is not ready, by the name of its Machine.
	healthCheck bool
	darkSince   map[string]time.Time
	// releases are the operators that bring the cluster to another release; nil while nothing does.
	releases *worldReleases
	// before are the names of the Machines when a story began.
	before []string
	// refuse makes the API server refuse to create an object; nil is never.
	refuse func(client.Object) error
}

func newWorld(t *testing.T, replicas int32, workers int) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, assisted.AddToScheme, bootstrapv1.AddToScheme,
		controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{
		t: t, gate: &servedCRDs{}, installed: newWorldEtcd(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		events: events.NewFakeRecorder(1000), unbootable: map[string]bool{}, darkSince: map[string]time.Time{},
	}
	w.credentials = &workloadtest.Credentials{Now: func() time.Time { return w.now }, Cluster: func() string { return w.api.ID }, Admin: "t"}
	w.hub = inject.NewHub(scheme, func() time.Time { return w.now }, []client.Object{
		&controlplanev1.OpenshiftAssistedControlPlane{}, &clusterv1.Machine{}, &clusterv1.Cluster{}, &hiveext.AgentClusterInstall{},
	}, inputs(replicas, workers))
	w.hub.Values = indexed
	w.hub.Refuse = func(o client.Object) error {
		if w.refuse == nil {
			return nil
		}
		return w.refuse(o)
	}
	w.client = w.hub
	w.r = w.reconciler(w.client, w.client)
	return w
}

// indexed are the values by which the manager's cache finds an object by a field; without that index it would fail.
func indexed(o client.Object, field string) ([]string, error) {
	for _, i := range append(index.All(), index.Agents()) {
		if reflect.TypeOf(i.Kind) == reflect.TypeOf(o) && i.Field == field {
			return i.Values(o), nil
		}
	}
	return nil, fmt.Errorf("the cache has no index of %T by %s", o, field)
}

// reconciler returns one that has just been started, with a client that reads from its cache, and a reader past it.
func (w *world) reconciler(cached client.Client, live client.Reader) *Reconciler {
	return &Reconciler{
		Client: cached, APIReader: live, Kubeconfigs: cached, InstallerKubeconfigs: cached,
		Identity: &w.api.Identity, Health: &w.api.Health, Upgrades: &w.api.upgrades, Etcd: w.installed, Nodes: w.installed, Recorder: w.events,
		Credentials: w.credentials, TokenLifetime: 7 * 24 * time.Hour,
		Infrastructure:              &infrastructure.Reader{Cached: cached, Live: live, Label: controlplanev1.InfrastructureRoleLabel},
		RemoteConditionsGracePeriod: 5 * time.Minute,
		gate:                        w.gate, now: func() time.Time { return w.now }, controller: capicontrollerutil.NewFakeController(),
	}
}

// inputs are the objects that a user and Cluster API core have made.
func inputs(replicas int32, workers int) []client.Object {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName, UID: "cluster"}}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.5", Port: 6443}
	cluster.Status.Initialization.InfrastructureProvisioned = new(true)
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace:  namespace,
		Name:       "cp",
		UID:        "cp",
		Generation: 1,
		Labels:     map[string]string{clusterv1.ClusterNameLabel: clusterName},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: clusterName, UID: "cluster"},
		},
	}}
	cp.Spec = controlplanev1.OpenshiftAssistedControlPlaneSpec{
		Replicas: &replicas, Version: kubelet, DistributionVersion: "4.20.4",
		MachineTemplate: controlplanev1.MachineTemplate{Spec: controlplanev1.MachineTemplateSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup.Group, Kind: "Metal3MachineTemplate", Name: "t"},
		}},
		Install: controlplanev1.InstallSpec{BaseDomain: "example.com", PullSecretRef: bootstrapv1.LocalSecretReference{Name: "pull"}},
	}
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"image": map[string]any{"url": "http://placeholder.invalid/x", "diskFormat": "live-iso"},
	}}}}}
	template.SetGroupVersionKind(infraGroup.WithKind("Metal3MachineTemplate"))
	template.SetNamespace(namespace)
	template.SetName("t")
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "md", Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName}},
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: clusterName, Replicas: new(int32(workers))},
	}
	return []client.Object{cluster, cp, template, deployment, crd("metal3machines"), crd("metal3machinetemplates")}
}

func crd(plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: plural + "." + infraGroup.Group, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": infraGroup.Version},
	}}
}

var key = types.NamespacedName{Namespace: namespace, Name: "cp"}

// reconcile runs one pass and returns its result.
func (w *world) reconcile() ctrl.Result {
	w.t.Helper()
	result, err := w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	if err != nil {
		w.t.Fatalf("reconcile: %v", err)
	}
	return result
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) controlPlane() *controlplanev1.OpenshiftAssistedControlPlane {
	w.t.Helper()
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	if err := w.client.Get(context.Background(), key, cp); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return cp
}

// install returns the AgentClusterInstall, or nil.
func (w *world) install() *hiveext.AgentClusterInstall {
	w.t.Helper()
	install := &hiveext.AgentClusterInstall{}
	if err := w.client.Get(context.Background(), key, install); err != nil {
		w.must(client.IgnoreNotFound(err))
		return nil
	}
	return install
}

func (w *world) machines() []clusterv1.Machine {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	w.must(w.client.List(context.Background(), list))
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Name < list.Items[j].Name })
	return list.Items
}

func (w *world) agents() []assisted.Agent {
	w.t.Helper()
	list := &assisted.AgentList{}
	w.must(w.client.List(context.Background(), list))
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Name < list.Items[j].Name })
	return list.Items
}

// summary is one line of the story.
func (w *world) summary() string {
	cp := w.controlPlane()
	var b strings.Builder
	fmt.Fprintf(&b, "installed=%s initialized=%s available=%s", conditions.GetReason(cp, controlplanev1.InstalledCondition),
		conditions.GetReason(cp, controlplanev1.InitializedCondition), conditions.GetReason(cp, controlplanev1.AvailableCondition))
	names := []string{}
	for _, m := range w.machines() {
		names = append(names, m.Name)
	}
	fmt.Fprintf(&b, "\n  machines: %s", strings.Join(names, " "))
	if install := w.install(); install != nil {
		set, closed := assisted.DayOneAgents(install)
		fmt.Fprintf(
			&b, "\n  install %s: hold=%t requirements=%d+%d closed=%t %s", install.Annotations[controlplanev1.InstallAttemptAnnotation],
			install.Spec.HoldInstallation, install.Spec.ProvisionRequirements.ControlPlaneAgents, install.Spec.ProvisionRequirements.WorkerAgents,
			closed, strings.Join(set, " "),
		)
	}
	bound := []string{}
	for _, a := range w.agents() {
		if a.Spec.ClusterDeploymentName != nil {
			bound = append(bound, a.Name)
		}
	}
	fmt.Fprintf(&b, "\n  bound: %s", strings.Join(bound, " "))
	return b.String()
}
