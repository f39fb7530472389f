// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload/workloadtest"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
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
	client client.Client
	r      *Reconciler
	events *events.FakeRecorder
	gate   *servedCRDs
	api    struct {
		workloadtest.Identity
		workloadtest.Health
	}
	now  time.Time
	uids int
	// stage is how far the faked assisted-service is with the installation.
	stage int
	// unbootable are the names of Machines whose hosts never register.
	unbootable map[string]bool
	// failAt makes the installation fail at a stage; 0 is never.
	failAt int
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
		t: t, gate: &servedCRDs{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		events: events.NewFakeRecorder(1000), unbootable: map[string]bool{},
	}
	// The default tracker keeps managed fields, which nothing here needs, and makes a REST mapper of the whole scheme for every write.
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).
		WithStatusSubresource(&controlplanev1.OpenshiftAssistedControlPlane{}, &clusterv1.Machine{}, &clusterv1.Cluster{},
			&hiveext.AgentClusterInstall{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: w.create}).
		WithObjects(inputs(replicas, workers)...).Build()
	w.r = &Reconciler{
		Client: w.client, APIReader: w.client, Kubeconfigs: w.client, InstallerKubeconfigs: w.client,
		Identity: &w.api.Identity, Health: &w.api.Health, Recorder: w.events,
		Infrastructure:              &infrastructure.Reader{Cached: w.client, Live: w.client, Label: controlplanev1.InfrastructureRoleLabel},
		RemoteConditionsGracePeriod: 5 * time.Minute,
		gate:                        w.gate, now: func() time.Time { return w.now }, controller: capicontrollerutil.NewFakeController(),
	}
	return w
}

// create gives objects a UID as an API server does.
func (w *world) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	if w.refuse != nil {
		if err := w.refuse(o); err != nil {
			return err
		}
	}
	if o.GetUID() == "" {
		w.uids++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
	}
	return c.Create(ctx, o, opts...)
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

// machineSet creates the worker Machines that the MachineDeployment asks for.
func (w *world) machineSet() {
	md := &clusterv1.MachineDeployment{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "md"}, md))
	for i := range int(*md.Spec.Replicas) {
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("worker-%d", i),
				Labels:          map[string]string{clusterv1.ClusterNameLabel: clusterName},
				OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: "ms", UID: "ms", Controller: new(true)}},
			},
			Spec: clusterv1.MachineSpec{ClusterName: clusterName, Version: kubelet},
		}
		w.must(client.IgnoreAlreadyExists(w.client.Create(context.Background(), m)))
	}
}

// bootstrap registers an Agent for every Machine, and binds it when the gate is open; a bound host is ready one step later.
func (w *world) bootstrap() {
	for _, m := range w.machines() {
		if w.unbootable[m.Name] {
			continue
		}
		role := assisted.RoleWorker
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			role = assisted.RoleMaster
		}
		agent := &assisted.Agent{}
		err := w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "agent-" + m.Name}, agent)
		switch {
		case err != nil:
			w.must(client.IgnoreNotFound(err))
			agent = &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "agent-" + m.Name, Annotations: map[string]string{bootstrapv1.ClaimAnnotation: assisted.Claim(&m)},
			}}
			agent.Status.DebugInfo.State = assisted.AgentStateKnownUnbound
			w.must(w.client.Create(context.Background(), agent))
		case agent.Spec.ClusterDeploymentName == nil && assisted.GateOf(w.install(), role) == assisted.GateDayOne:
			agent.Spec = assisted.AgentSpec{
				ClusterDeploymentName: &assisted.ClusterReference{Namespace: namespace, Name: "cp"}, Role: role,
				Approved: true,
			}
			w.must(w.client.Update(context.Background(), agent))
		case agent.Spec.ClusterDeploymentName != nil && agent.Status.DebugInfo.State == assisted.AgentStateKnownUnbound:
			ready(agent)
			w.must(w.client.Update(context.Background(), agent))
		}
	}
}

func ready(a *assisted.Agent) {
	a.Status.DebugInfo.State = assisted.AgentStateKnown
	a.Status.Conditions = []assisted.Condition{
		{Type: assisted.ConditionBound, Status: corev1.ConditionTrue},
		{Type: assisted.ConditionSpecSynced, Status: corev1.ConditionTrue},
		{Type: assisted.ConditionConnected, Status: corev1.ConditionTrue},
		{Type: assisted.ConditionRequirementsMet, Status: corev1.ConditionTrue, Reason: assisted.ReasonAgentIsReady},
	}
}

// service is assisted-service: it starts at the moment of equality unless held, and then goes from stage to stage.
func (w *world) service() {
	install := w.install()
	if install == nil {
		w.stage = 0
		return
	}
	if w.stage == 0 {
		masters, workers, unready := 0, 0, 0
		for _, a := range w.agents() {
			switch {
			case !a.BoundTo(namespace, "cp"):
			case !a.ReadyToInstall():
				unready++
			case a.Spec.Role == assisted.RoleMaster:
				masters++
			default:
				workers++
			}
		}
		wanted := hiveext.ProvisionRequirements{ControlPlaneAgents: masters, WorkerAgents: workers}
		if !install.Spec.HoldInstallation && unready == 0 && install.Spec.ProvisionRequirements == wanted {
			w.stage = 1
		}
	} else {
		w.stage++
	}
	w.report(install)
}

// report writes what the service says at its stage.
func (w *world) report(install *hiveext.AgentClusterInstall) {
	states := []string{
		assisted.ClusterStateInsufficient, assisted.ClusterStatePreparing, assisted.ClusterStateInstalling, assisted.ClusterStateFinalizing,
	}
	reason := hiveext.ClusterInstallationInProgressReason
	completed, failed := corev1.ConditionFalse, corev1.ConditionFalse
	state := assisted.ClusterStateAddingHosts
	switch {
	case w.failAt > 0 && w.stage >= w.failAt:
		failed, state, reason = corev1.ConditionTrue, "error", hiveext.ClusterInstallationFailedReason
	case w.stage == 0:
		state, reason = states[0], hiveext.ClusterInstallationNotStartedReason
	case w.stage < len(states):
		state = states[w.stage]
	default:
		completed, reason = corev1.ConditionTrue, hiveext.ClusterInstalledReason
	}
	if w.stage >= 2 && install.Spec.ClusterMetadata == nil {
		w.publishCredentials(install)
	}
	install.Status.DebugInfo.State = state
	install.Status.Progress.TotalPercentage = int64(min(w.stage, len(states)) * 25)
	install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterCompletedCondition, Status: completed, Reason: reason},
		{Type: hiveext.ClusterFailedCondition, Status: failed, Message: "The installation failed: cluster has hosts in error"},
	}
	w.must(w.client.Status().Update(context.Background(), install))
}

func (w *world) publishCredentials(install *hiveext.AgentClusterInstall) {
	cd := &hivev1.ClusterDeployment{}
	w.must(w.client.Get(context.Background(), key, cd))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "cp-admin-kubeconfig",
			OwnerReferences: []metav1.OwnerReference{{Kind: "ClusterDeployment", Name: "cp", UID: cd.UID}},
		},
		Data: map[string][]byte{assisted.KubeconfigKey: []byte(kubeconfigOf("installer"))},
	}
	w.must(client.IgnoreNotFound(w.client.Delete(context.Background(), secret.DeepCopy())))
	w.must(w.client.Create(context.Background(), secret))
	install.Spec.ClusterMetadata = &hivev1.ClusterMetadata{
		ClusterID: clusterID, InfraID: "infra",
		AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: secret.Name},
	}
	w.must(w.client.Update(context.Background(), install))
	install.Status.DebugInfo.State = ""
}

func kubeconfigOf(user string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"x","cluster":{"server":"https://api:6443"}}],` +
		`"contexts":[{"name":"x","context":{"cluster":"x","user":"` + user + `"}}],"users":[{"name":"` + user + `","user":{"token":"t"}}]}`
}

// core gives Machines of an installed cluster their Nodes.
func (w *world) core() {
	if w.api.ID == "" {
		return
	}
	for _, m := range w.machines() {
		if m.Status.NodeRef.IsDefined() {
			continue
		}
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: kubelet}
		for _, condition := range []string{clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition,
			clusterv1.MachineNodeReadyCondition} {
			conditions.Set(&m, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test"})
		}
		w.must(w.client.Status().Update(context.Background(), &m))
	}
}

// workload lets the installed cluster answer once the installation is complete.
func (w *world) workload() {
	if w.stage >= 4 && (w.failAt == 0 || w.stage < w.failAt) {
		w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
	}
}

// healthyOperators is what the operators of a control plane say that is well.
func healthyOperators() map[string]workload.Operator {
	operators := map[string]workload.Operator{}
	for _, name := range workload.OperatorNames() {
		operators[name] = workload.Operator{
			Available: workload.OperatorCondition{Status: "True"}, Progressing: workload.OperatorCondition{Status: "False"},
			Degraded: workload.OperatorCondition{Status: "False"},
		}
	}
	return operators
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
