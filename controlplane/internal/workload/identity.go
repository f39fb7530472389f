// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// Identity tells which cluster answers.
type Identity interface {
	// ClusterID asks the cluster's API server now for the ID of the OpenShift cluster. It is empty while there is no connection, which is an
	// answer and not an error.
	ClusterID(ctx context.Context, cluster client.ObjectKey) (string, error)
}

// clusterVersion is the only ClusterVersion of an OpenShift cluster.
const clusterVersion = "version"

// ClusterID reads the ClusterVersion, which any OpenShift API server has and the admin credential may read. An ID that is empty is an
// error: nothing may be decided on it.
func (c Cached) ClusterID(ctx context.Context, cluster client.ObjectKey) (string, error) {
	remote, err := c.live(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	version := &configv1.ClusterVersion{}
	if err := remote.Get(ctx, client.ObjectKey{Name: clusterVersion}, version); err != nil {
		return "", fmt.Errorf("read the ClusterVersion of Cluster %s: %w", cluster, err)
	}
	if version.Spec.ClusterID == "" {
		return "", fmt.Errorf("the ClusterVersion of Cluster %s has no spec.clusterID", cluster)
	}
	return string(version.Spec.ClusterID), nil
}
