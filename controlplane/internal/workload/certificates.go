// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Certificates looks after requests for the serving certificates of kubelets in installed clusters.
type Certificates interface {
	// ServingRequests reads the requests, and lets every later change of one wake the subscriber. There are none without an error when there
	// is no connection; the subscriber is woken by the ClusterCache when there is one.
	ServingRequests(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) ([]certificatesv1.CertificateSigningRequest, error)
	// Node asks the cluster's API server now for a Node; nil when there is none.
	Node(ctx context.Context, cluster client.ObjectKey, name string) (*corev1.Node, error)
	// Approve approves a request as it was read.
	Approve(ctx context.Context, cluster client.ObjectKey, request *certificatesv1.CertificateSigningRequest, reason, message string) error
}

// ServingRequests lists what the connection's cache holds: requests of this signer only (kinds).
func (c Cached) ServingRequests(
	ctx context.Context, cluster client.ObjectKey, subscriber Subscriber,
) ([]certificatesv1.CertificateSigningRequest, error) {
	all := func(client.Object) bool { return true }
	watch := subscriber.to("servingcertificates", &certificatesv1.CertificateSigningRequest{}, all).Resting(subscriber.Waits)
	remote, err := c.watched(ctx, cluster, "CertificateSigningRequests", watch)
	if err != nil || remote == nil {
		return nil, err
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := remote.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list CertificateSigningRequests of Cluster %s: %w", cluster, err)
	}
	return list.Items, nil
}

// Node does not cache: nobody needs a copy of all Nodes for a few requests a month.
func (c Cached) Node(ctx context.Context, cluster client.ObjectKey, name string) (*corev1.Node, error) {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return readNode(ctx, remote, cluster, name)
}

// Approve writes with the version that was read: nothing is approved that has changed since.
func (c Cached) Approve(
	ctx context.Context, cluster client.ObjectKey, request *certificatesv1.CertificateSigningRequest, reason, message string,
) error {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return err
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
