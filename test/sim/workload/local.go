// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// Local starts the kube-apiservers of installed clusters beside a local control plane, in its etcd.
func Local(cp *localcontrolplane.ControlPlane) APIServers { return local{cp} }

type local struct {
	cp *localcontrolplane.ControlPlane
}

func (l local) Start(ctx context.Context, spec APIServerSpec) (APIServer, error) {
	return l.cp.StartAPIServer(ctx, localcontrolplane.APIServerOptions{Name: spec.Name, EtcdPrefix: spec.EtcdPrefix, SANs: spec.SANs})
}

// ClusterEndpoint finds a cluster's API address: the first API VIP, else the control-plane endpoint of the Cluster that
// the ClusterDeployment's label names.
func ClusterEndpoint(reader client.Reader) func(context.Context, assisted.ClusterSpec) (string, int, error) {
	return func(ctx context.Context, spec assisted.ClusterSpec) (string, int, error) {
		if len(spec.APIVIPs) > 0 {
			return firstVIP(ctx, spec)
		}
		cd := &hivev1.ClusterDeployment{}
		if err := reader.Get(ctx, spec.Key, cd); err != nil {
			return "", 0, fmt.Errorf("cannot read ClusterDeployment %s: %w", spec.Key, err)
		}
		key := client.ObjectKey{Namespace: cd.Namespace, Name: cd.Labels[clusterv1.ClusterNameLabel]}
		cluster := &clusterv1.Cluster{}
		if err := reader.Get(ctx, key, cluster); err != nil {
			return "", 0, fmt.Errorf("cannot read Cluster %s of ClusterDeployment %s: %w", key, spec.Key, err)
		}
		endpoint := cluster.Spec.ControlPlaneEndpoint
		if endpoint.Host == "" {
			return "", 0, fmt.Errorf("Cluster %s has no control-plane endpoint: set it in the infrastructure cluster", key)
		}
		return endpoint.Host, int(endpoint.Port), nil
	}
}
