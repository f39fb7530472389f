// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// guardBudget is the PodDisruptionBudget that lets one guard pod be evicted at a time.
const guardBudget = "etcd-guard-pdb"

// showEtcdPods makes, changes and deletes the Pods of etcd and their guards, as kubelets and the operator do, and writes which members
// vote.
func (c *cluster) showEtcdPods(ctx context.Context) error {
	c.etcdLock.Lock()
	pods, endpoints := c.etcd.Pods(), c.etcd.Endpoints()
	guards, minAvailable := c.etcd.Guards()
	c.etcdLock.Unlock()
	have, err := c.etcdPods(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, pod := range pods {
		wanted[pod.Name] = true
		if have[pod.Name] == nil {
			if err := c.makeCertificates(ctx, pod.Node); err != nil {
				return err
			}
		}
		if err := c.showPod(ctx, have[pod.Name], etcdPod(pod), podStatus(pod)); err != nil {
			return err
		}
	}
	for _, guard := range guards {
		wanted[guard.Name] = have[guard.Name] != nil || guard.Remade
		if !wanted[guard.Name] {
			continue
		}
		if err := c.showPod(ctx, have[guard.Name], guardPod(guard), guardStatus(guard)); err != nil {
			return err
		}
	}
	if err := c.endPods(ctx, have, wanted); err != nil {
		return err
	}
	if err := c.showBudget(ctx, have, minAvailable); err != nil {
		return err
	}
	return c.showEndpoints(ctx, endpoints)
}

// endPods deletes the Pods that nobody wants any more, and ends those that were evicted.
func (c *cluster) endPods(ctx context.Context, have map[string]*corev1.Pod, wanted map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(have)) {
		// A pod that was evicted ends at once, because there is nothing in it; on a host without power it never ends.
		if wanted[name] && (have[name].DeletionTimestamp.IsZero() || !c.runs(have[name].Spec.NodeName)) {
			continue
		}
		if err := client.IgnoreNotFound(c.client.Delete(ctx, have[name], client.GracePeriodSeconds(0))); err != nil {
			return fmt.Errorf("cannot delete Pod %s: %w", name, err)
		}
	}
	return nil
}

// makeCertificates makes the Secrets of the member on a host, as the operator does before its Pod can start. They stay for days when the
// host is gone.
func (c *cluster) makeCertificates(ctx context.Context, node string) error {
	for _, use := range []string{"peer", "serving", "serving-metrics"} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "etcd-" + use + "-" + node, Namespace: etcdNamespace},
			StringData: map[string]string{corev1.TLSCertKey: "certificate of " + node, corev1.TLSPrivateKeyKey: "key of " + node},
		}
		if err := c.client.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot create Secret %s: %w", secret.Name, err)
		}
	}
	return nil
}

// runs reports whether a host has power.
func (c *cluster) runs(host string) bool {
	return slices.ContainsFunc(c.wanted().Nodes, func(node assisted.NodeSpec) bool { return node.Name == host && node.Running })
}

// etcdPods are the Pods of etcd's namespace, by name.
func (c *cluster) etcdPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.client.List(ctx, list, client.InNamespace(etcdNamespace)); err != nil {
		return nil, fmt.Errorf("cannot list the Pods of etcd: %w", err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

// showPod makes a Pod and writes its status when it changes.
func (c *cluster) showPod(ctx context.Context, have, wanted *corev1.Pod, status corev1.PodStatus) error {
	if have == nil {
		if err := c.client.Create(ctx, wanted); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create Pod %s: %w", wanted.Name, err)
		}
		have = wanted
	}
	if equality.Semantic.DeepEqual(have.Status.Conditions, status.Conditions) &&
		equality.Semantic.DeepEqual(have.Status.ContainerStatuses, status.ContainerStatuses) && have.Status.Phase == status.Phase {
		return nil
	}
	changed := have.DeepCopy()
	changed.Status.Phase, changed.Status.Conditions = status.Phase, status.Conditions
	changed.Status.ContainerStatuses = status.ContainerStatuses
	if err := c.client.Status().Patch(ctx, changed, client.MergeFrom(have)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of Pod %s: %w", wanted.Name, err)
	}
	return nil
}

// etcdPod is the mirror of a static Pod.
func etcdPod(pod etcd.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: etcdNamespace,
			Labels:      map[string]string{"app": "etcd", "k8s-app": "etcd", "etcd": "true"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "static"},
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Node, HostNetwork: true, PriorityClassName: "system-node-critical",
			Containers: []corev1.Container{{Name: "etcdctl", Image: "etcd"}, {Name: "etcd", Image: "etcd"}},
		},
	}
}

func podStatus(pod etcd.Pod) corev1.PodStatus {
	state := corev1.ContainerState{}
	if pod.Running {
		state.Running = &corev1.ContainerStateRunning{}
	}
	return corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: podReady(pod.Ready),
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "etcdctl", Image: "etcd", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "etcd", Image: "etcd", Ready: pod.EtcdReady, State: state},
		},
	}
}

// guardPod is what the disruption budget counts in place of static Pods, which it cannot protect.
func guardPod(guard etcd.Guard) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: guard.Name, Namespace: etcdNamespace, Labels: map[string]string{"app": "guard"}},
		Spec: corev1.PodSpec{
			NodeName: guard.Node, Containers: []corev1.Container{{Name: "guard", Image: "cli"}}, TerminationGracePeriodSeconds: ptr.To[int64](3),
		},
	}
}

func guardStatus(guard etcd.Guard) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: podReady(guard.Ready),
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "guard", Image: "cli", Ready: guard.Ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
}

func podReady(ready bool) []corev1.PodCondition {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}}
}

// showBudget writes the disruption budget, and its status as the controller of disruptions would: nobody else runs one here.
func (c *cluster) showBudget(ctx context.Context, pods map[string]*corev1.Pod, minAvailable int) error {
	key := client.ObjectKey{Namespace: etcdNamespace, Name: guardBudget}
	budget := &policyv1.PodDisruptionBudget{}
	if err := c.client.Get(ctx, key, budget); apierrors.IsNotFound(err) {
		budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}}
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guard"}}
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
		budget.Spec.MinAvailable = ptr.To(intstr.FromInt(minAvailable))
		if err := c.client.Create(ctx, budget); err != nil {
			return fmt.Errorf("cannot create PodDisruptionBudget %s: %w", key, err)
		}
	} else if err != nil {
		return fmt.Errorf("cannot read PodDisruptionBudget %s: %w", key, err)
	}
	if budget.Spec.MinAvailable.IntValue() != minAvailable {
		before := budget.DeepCopy()
		budget.Spec.MinAvailable = ptr.To(intstr.FromInt(minAvailable))
		if err := c.client.Patch(ctx, budget, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("cannot change PodDisruptionBudget %s: %w", key, err)
		}
	}
	return c.showDisruptions(ctx, budget, pods)
}

// showDisruptions writes how many guards may be evicted.
func (c *cluster) showDisruptions(ctx context.Context, budget *policyv1.PodDisruptionBudget, pods map[string]*corev1.Pod) error {
	healthy, all := 0, 0
	for _, pod := range pods {
		if pod.Labels["app"] != "guard" {
			continue
		}
		all++
		if pod.DeletionTimestamp.IsZero() && slices.Contains(pod.Status.Conditions, podReady(true)[0]) {
			healthy++
		}
	}
	desired := budget.Spec.MinAvailable.IntValue()
	before := budget.DeepCopy()
	budget.Status.ObservedGeneration = budget.Generation
	budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = int32(healthy), int32(desired)
	budget.Status.ExpectedPods = int32(all)
	budget.Status.DisruptionsAllowed = int32(max(healthy-desired, 0))
	budget.Status.DisruptedPods = nil
	if equality.Semantic.DeepEqual(before.Status, budget.Status) {
		return nil
	}
	if err := c.client.Status().Patch(ctx, budget, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of PodDisruptionBudget %s: %w", budget.Name, err)
	}
	return nil
}

// showEndpoints writes the ConfigMap of the voters.
func (c *cluster) showEndpoints(ctx context.Context, endpoints map[string]string) error {
	have := &corev1.ConfigMap{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: etcdNamespace, Name: "etcd-endpoints"}, have)
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: etcdNamespace, Name: "etcd-endpoints"}, Data: endpoints}
	switch {
	case apierrors.IsNotFound(err):
		err = c.client.Create(ctx, wanted)
	case err == nil && !maps.Equal(have.Data, endpoints):
		wanted.ResourceVersion = have.ResourceVersion
		err = c.client.Update(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("cannot write ConfigMap etcd-endpoints: %w", err)
	}
	return nil
}
