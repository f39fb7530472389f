// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drain evicts what a drain evicts from a host, and reports whether nothing of it is left. What a disruption budget protects stays, and is
// tried again with the next look.
func (c *cluster) drain(ctx context.Context, host string) (drained bool, err error) {
	pods := &corev1.PodList{}
	if err := c.client.List(ctx, pods, client.MatchingFields{"spec.nodeName": host}); err != nil {
		return false, fmt.Errorf("cannot list the Pods of host %s: %w", host, err)
	}
	drained = true
	for i := range pods.Items {
		pod := &pods.Items[i]
		if staysInDrain(pod) {
			continue
		}
		drained = false
		if err := c.evict(ctx, pod); err != nil {
			return false, err
		}
	}
	return drained, nil
}

// staysInDrain is a Pod that a drain leaves alone: static ones, those of DaemonSets, and those that have ended.
func staysInDrain(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(pod)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return mirror || owner != nil && owner.Kind == "DaemonSet" || ended
}

// evict asks for the eviction of a Pod. The kubelet of a host that runs ends one that was evicted, because there is nothing in it.
func (c *cluster) evict(ctx context.Context, pod *corev1.Pod) error {
	var err error
	switch {
	case pod.DeletionTimestamp.IsZero():
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		err = c.client.SubResource("eviction").Create(ctx, pod, eviction)
	case c.runs(pod.Spec.NodeName):
		err = c.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
	}
	if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot evict Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
