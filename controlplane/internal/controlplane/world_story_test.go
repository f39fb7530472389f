// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/test/inject"
)

// story is what happens to a control plane, from the time when its manager is started. Each of its passes has a reason, as in a manager:
// one that nothing wakes waits for ever.
type story struct {
	begin    func(*testing.T) *world
	chapters []chapter
	// left fails the test when something is left in the end, or missing, that must not; nil when that is what is without a fault.
	left func(*testing.T, *world)
	// like is set when the calls that fail are those of another story, so that the manager ends and loses answers, and no more.
	like bool
	// more is how many writes more than usual it takes when a call fails.
	more int
}

// modes are what happens to the calls of the story: with the race detector one of them, another one for each story.
func (s story) modes(number int) []inject.Mode {
	modes := inject.Modes()
	if s.like {
		modes = []inject.Mode{inject.Lost, inject.ManagerEnds}
	}
	if thorough {
		return modes
	}
	return []inject.Mode{modes[number%len(modes)]}
}

// chapter is what a user does, and how it ends.
type chapter struct {
	do    func(*world)
	until func(*world) bool
}

// tell tells the story with the calls of a manager.
func (s story) tell(t *testing.T, calls *inject.Calls) inject.Ending {
	t.Helper()
	w := s.happens(t, calls)
	if s.left != nil {
		s.left(t, w)
	}
	return inject.Ending{Hub: w.hub, Others: w.left(), MoreWrites: s.more}
}

// happens lets the story happen.
func (s story) happens(t *testing.T, calls *inject.Calls) *world {
	t.Helper()
	w := s.begin(t)
	w.recorded() // The events of its beginning are none of its own.
	w.t = t
	calls.Use(w.hub)
	w.installed.around = calls.Remote
	w.credentials.Around = func(call func() error) error { return calls.Remote("ask for a credential", call) }
	manager := &inject.Manager{Calls: calls, Now: func() time.Time { return w.now }, Start: func() []inject.Controller {
		health, upgrades := w.r.Health, w.r.Upgrades
		w.r = w.reconciler(calls.Client(), calls.Live())
		w.r.Health, w.r.Upgrades, w.r.controller = health, upgrades, deferring{capicontrollerutil.NewFakeController(), calls}
		return []inject.Controller{{Reconcile: w.r.Reconcile, Wakes: w.wakes}}
	}}
	manager.Run()
	for _, c := range s.chapters {
		if c.do != nil {
			c.do(w)
		}
		w.play(manager, func() bool { return c.until(w) })
	}
	return w
}

// deferring is a controller that waits for its cache.
type deferring struct {
	*capicontrollerutil.FakeController
	calls *inject.Calls
}

// DeferNextReconcileUntilCacheUpToDate waits for a kind.
func (d deferring) DeferNextReconcileUntilCacheUpToDate(_ metav1.Object, of capicontrollerutil.GroupVersionKindType, _ string) {
	d.calls.Defer(of.Kind)
}

// wakes are the watches of the reconciler.
func (w *world) wakes(o client.Object) []ctrl.Request {
	ctx := context.Background()
	switch o.(type) {
	case *controlplanev1.OpenshiftAssistedControlPlane:
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	case *clusterv1.Machine, *clusterv1.MachineSet, *clusterv1.MachineDeployment, *clusterv1.MachinePool:
		return w.r.ofClusterObject(ctx, o)
	case *clusterv1.Cluster:
		return ofCluster(ctx, o)
	case *corev1.Secret:
		return append(w.r.ofKubeconfig(ctx, o), ofClusterDeploymentSecret(ctx, o)...)
	case *hivev1.ClusterDeployment, *hiveext.AgentClusterInstall:
		return ofSameName(ctx, o)
	case *hivev1.ClusterImageSet:
		return w.r.ofImageSet(ctx, o)
	case *assisted.Agent:
		return assisted.ToClusterDeployment(ctx, o)
	}
	return nil
}

// restingSteps is for how long nothing happens once a chapter has ended.
const restingSteps = 3

// play lets the manager and everybody else act until reached, and until nothing happens any more.
func (w *world) play(manager *inject.Manager, reached func() bool) {
	w.t.Helper()
	told := ""
	for step, rests := 1, 0; rests < restingSteps; step++ {
		if step > maxLife {
			w.t.Fatalf("not reached after %d steps: %s\n%s", maxLife, w.summary(), w.conditions())
		}
		rests++
		if manager.Work(w.t) || !reached() || manager.Soon(10*time.Minute) {
			rests = 0
		}
		w.others()
		w.now = w.now.Add(time.Minute)
		if now := w.remote(); now != told {
			told = now
			manager.Wake(ctrl.Request{NamespacedName: key})
		}
	}
}

// others lets everybody else act once.
func (w *world) others() {
	for _, act := range []func(){
		w.machineSet, w.finalize, w.own, w.hostsLeave, w.bootstrap, w.anyService, w.answer, w.core, w.departures, w.etcd,
	} {
		act()
	}
	if w.healthCheck {
		w.nodeHealth()
	}
	if w.releases != nil {
		w.releases.tick()
	}
	w.hub.Collect(w.t, "MachineSet")
	if w.controlPlane().DeletionTimestamp.IsZero() && w.controlPlane().Name != "" {
		w.checkEtcd()
	}
}

// anyService is assisted-service, wherever a cluster was installed.
func (w *world) anyService() {
	if d := w.deployment(); d != nil && d.Spec.Installed {
		w.importService()
		return
	}
	w.service()
}

// own makes each Machine the owner of its config and of its infrastructure machine, as Cluster API core does.
func (w *world) own() {
	for _, m := range w.machines() {
		for _, o := range []client.Object{infra("Metal3Machine"), &bootstrapv1.OpenshiftAssistedConfig{}} {
			exists, err := kube.Get(context.Background(), w.client, client.ObjectKeyFromObject(&m), o)
			w.must(err)
			owner := *metav1.NewControllerRef(&m, clusterv1.GroupVersion.WithKind("Machine"))
			if exists && !util.HasExactOwnerRef(o.GetOwnerReferences(), owner) {
				o.SetOwnerReferences([]metav1.OwnerReference{owner})
				w.must(w.client.Update(context.Background(), o))
			}
		}
	}
}

// answer lets an installed cluster answer.
func (w *world) answer() {
	if w.api.ID == "" {
		w.workload()
	}
	if w.api.ID == "" {
		return
	}
	w.api.Last = w.now
	if exists, err := kube.Get(context.Background(), w.client, kubeconfigKey, &corev1.Secret{}); err == nil && exists {
		w.credentials.Lost = !w.credentials.Takes(w.kubeconfig().Data["value"])
	}
}

var kubeconfigKey = client.ObjectKey{Namespace: namespace, Name: clusterName + "-kubeconfig"}

// hostsLeave is what the bootstrap provider does with the Agents of Machines that are gone: their hosts register anew for others.
func (w *world) hostsLeave() {
	claims := map[string]bool{}
	for _, m := range w.machines() {
		claims[assisted.Claim(&m)] = true
	}
	for _, a := range w.agents() {
		if !claims[a.Annotations[bootstrapv1.ClaimAnnotation]] {
			w.vanish(&a)
		}
	}
}

// remote is all that the installed cluster tells the manager without being asked.
func (w *world) remote() string {
	ctx, nobody := context.Background(), workload.Subscriber{}
	report, _ := w.installed.EtcdOperator(ctx, client.ObjectKey{}, nobody)
	version, _ := w.r.Upgrades.Version(ctx, client.ObjectKey{}, nobody)
	updates, _ := w.r.Health.Updates(ctx, client.ObjectKey{}, nobody)
	s := fmt.Sprint(w.api.ID, w.api.Reported)
	if report != nil {
		s += fmt.Sprintf("%+v", *report)
	}
	if version != nil {
		s += fmt.Sprintf("%+v", *version)
	}
	if updates != nil {
		s += fmt.Sprintf("%+v", *updates)
	}
	return s
}

// conditions are all conditions of the control plane.
func (w *world) conditions() string {
	var b strings.Builder
	for _, c := range w.controlPlane().Status.Conditions {
		fmt.Fprintf(&b, "%s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// left is what is left in the installed cluster.
func (w *world) left() string {
	s := fmt.Sprintf("account %t, bound %t, removed members %v", w.credentials.Account, w.credentials.Bound, w.installed.removed)
	if w.installed.model != nil {
		for _, m := range w.installed.model.Members() {
			s += fmt.Sprintf("\nmember %s, learner %t", m.Name, m.Learner)
		}
	}
	for _, host := range w.installed.list() {
		s += fmt.Sprintf("\nhost %s, Node %t, ready %t", host.Name, host.Node, host.Ready)
	}
	if w.releases != nil {
		s += fmt.Sprintf("\nupdate %+v, acknowledged %v, writes %d", *w.releases.version.Spec.DesiredUpdate, w.releases.acks, w.releases.writes)
	}
	return s
}
