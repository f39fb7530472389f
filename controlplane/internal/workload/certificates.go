// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// Certificates looks after requests for the serving certificates of kubelets in installed clusters.
type Certificates interface {
	// ServingRequests reads the requests, and lets every later change of one wake the subscriber. connected is false without an error when
	// there is no connection; the subscriber is woken by the ClusterCache when there is one.
	ServingRequests(
		ctx context.Context, cluster client.ObjectKey, subscriber Subscriber,
	) (requests []certificatesv1.CertificateSigningRequest, connected bool, err error)
	// Node asks the cluster's API server now for a Node; nil when there is none.
	Node(ctx context.Context, cluster client.ObjectKey, name string) (*corev1.Node, error)
	// Approve approves a request as it was read.
	Approve(ctx context.Context, cluster client.ObjectKey, request *certificatesv1.CertificateSigningRequest, reason, message string) error
}

var _ Certificates = Cached{}

func (s Subscriber) servingRequests() clustercache.Watcher {
	return clustercache.NewWatcher(clustercache.WatcherOptions{
		Name:    "servingcertificates/" + s.Request.Name,
		Watcher: s.Controller,
		Kind:    &certificatesv1.CertificateSigningRequest{},
		EventHandler: handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{s.Request}
		}),
	})
}

// ServingRequests reads from the connection's cache, which ends with the connection, and the watch with it: every call renews it.
func (c Cached) ServingRequests(
	ctx context.Context, cluster client.ObjectKey, subscriber Subscriber,
) ([]certificatesv1.CertificateSigningRequest, bool, error) {
	err := c.Cache.Watch(ctx, cluster, subscriber.servingRequests())
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("watch CertificateSigningRequests of Cluster %s: %w", cluster, err)
	}
	remote, err := c.Cache.GetReader(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := remote.List(ctx, list); err != nil {
		return nil, false, fmt.Errorf("list CertificateSigningRequests of Cluster %s: %w", cluster, err)
	}
	return list.Items, true, nil
}

// Node does not cache: nobody needs a copy of all Nodes for a few requests a month.
func (c Cached) Node(ctx context.Context, cluster client.ObjectKey, name string) (*corev1.Node, error) {
	remote, err := c.Cache.GetUncachedClient(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	node := &corev1.Node{}
	if err := remote.Get(ctx, client.ObjectKey{Name: name}, node); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Node %s of Cluster %s: %w", name, cluster, err)
	}
	return node, nil
}

// Approve writes with the version that was read: nothing is approved that has changed since.
func (c Cached) Approve(
	ctx context.Context, cluster client.ObjectKey, request *certificatesv1.CertificateSigningRequest, reason, message string,
) error {
	remote, err := c.Cache.GetUncachedClient(ctx, cluster)
	if err != nil {
		return fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	approved := request.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
	if err := remote.SubResource("approval").Update(ctx, approved); err != nil {
		return fmt.Errorf("approve CertificateSigningRequest %s of Cluster %s: %w", request.Name, cluster, err)
	}
	return nil
}
