// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// NewScheme returns a scheme with every kind that Collect reads. Secrets are not among them.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, bmov1alpha1.AddToScheme, assisted.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register the API types: %w", err)
		}
	}
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Event{}, &corev1.EventList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme, nil
}

// Collect reads what a Report needs. What is not served, or not allowed, is left out and named in Input.Unread; only the Cluster has to be
// readable.
func Collect(ctx context.Context, from client.Client, key types.NamespacedName) (*Input, error) {
	in := &Input{Cluster: &clusterv1.Cluster{}}
	if err := from.Get(ctx, key, in.Cluster); err != nil {
		return nil, fmt.Errorf("cannot read Cluster %s: %w", key, err)
	}
	c := &collector{from: from, in: in, namespace: client.InNamespace(key.Namespace)}
	of := client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}
	machines, configs := &clusterv1.MachineList{}, &bootstrapv1.OpenshiftAssistedConfigList{}
	hosts, infraEnvs, agents := &bmov1alpha1.BareMetalHostList{}, &assisted.InfraEnvList{}, &assisted.AgentList{}
	events := &corev1.EventList{}
	c.list(ctx, "Machines", machines, of)
	c.list(ctx, "OpenshiftAssistedConfigs", configs, of)
	c.list(ctx, "BareMetalHosts", hosts)
	c.list(ctx, "InfraEnvs", infraEnvs)
	c.list(ctx, "Agents", agents)
	c.list(ctx, "Events", events)
	in.Machines, in.Configs, in.Hosts = machines.Items, configs.Items, hosts.Items
	in.InfraEnvs, in.Agents, in.Events = infraEnvs.Items, agents.Items, events.Items
	c.infrastructure(ctx, of)
	c.controlPlane(ctx)
	in.Now = time.Now()
	return in, nil
}

type collector struct {
	from      client.Client
	in        *Input
	namespace client.InNamespace
}

// failed notes that something could not be read. What does not exist is no failure.
func (c *collector) failed(what string, err error) {
	switch {
	case apierrors.IsNotFound(err):
	case meta.IsNoMatchError(err):
		c.in.Unread = append(c.in.Unread, what+" are not served by this API server")
	default:
		c.in.Unread = append(c.in.Unread, fmt.Sprintf("%s cannot be read: %v", what, err))
	}
}

func (c *collector) list(ctx context.Context, what string, into client.ObjectList, opts ...client.ListOption) {
	if err := c.from.List(ctx, into, append(opts, c.namespace)...); err != nil {
		c.failed(what, err)
	}
}

// infrastructure reads the Metal3Machines in the version that the API server prefers.
func (c *collector) infrastructure(ctx context.Context, of client.ListOption) {
	kind := schema.GroupKind{Group: metal3.InfrastructureGroup, Kind: metal3.MachineKind}
	mapping, err := c.from.RESTMapper().RESTMapping(kind)
	if err != nil {
		c.failed("Metal3Machines", err)
		return
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(mapping.GroupVersionKind)
	c.list(ctx, "Metal3Machines", found, of)
	c.in.Infrastructure = found.Items
}

// controlPlane reads the control plane that the Cluster names, and the AgentClusterInstall that has its name.
func (c *collector) controlPlane(ctx context.Context) {
	key := client.ObjectKey{Namespace: string(c.namespace), Name: c.in.Cluster.Spec.ControlPlaneRef.Name}
	if c.in.Cluster.Spec.ControlPlaneRef.Kind != "OpenshiftAssistedControlPlane" {
		return
	}
	controlPlane, install := &controlplanev1.OpenshiftAssistedControlPlane{}, &hiveext.AgentClusterInstall{}
	if err := c.from.Get(ctx, key, controlPlane); err != nil {
		c.failed("OpenshiftAssistedControlPlanes", err)
	} else {
		c.in.ControlPlane = controlPlane
	}
	if err := c.from.Get(ctx, key, install); err != nil {
		c.failed("AgentClusterInstalls", err)
	} else {
		c.in.Install = install
	}
}
