// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// CacheRules are the manager's rules for Secrets: those of Clusters only, and the data of none but kubeconfigs (CONTRACT CORE-17).
func CacheRules() map[client.Object]cache.ByObject {
	ofCluster, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	utilruntime.Must(err)
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: labels.NewSelector().Add(*ofCluster), Transform: keepKubeconfigs},
	}
}

// Reduce drops what this manager does not read of objects on their way into its cache, and what makes them large: the disks of Agents,
// among which the bootstrap manager chooses, what Cluster API says of its own MachineDeployments and MachineSets, and all but the metadata
// of infrastructure machines. It is no CacheRule, for which the CRDs would have to be served when the manager starts. What is written is
// the difference to what was read, so nothing is lost.
func Reduce(o client.Object) {
	switch o := o.(type) {
	case *assisted.Agent:
		o.Status.Inventory.Disks = nil
	case *clusterv1.MachineDeployment:
		o.Status = clusterv1.MachineDeploymentStatus{}
	case *clusterv1.MachineSet:
		o.Status = clusterv1.MachineSetStatus{}
	case *unstructured.Unstructured:
		if !strings.HasSuffix(o.GetKind(), clusterv1.TemplateSuffix) {
			maps.DeleteFunc(o.Object, func(field string, _ any) bool {
				return !slices.Contains([]string{"apiVersion", "kind", "metadata"}, field)
			})
		}
	}
}

// keepKubeconfigs keeps nothing but the identity of Secrets that are no kubeconfig of a Cluster and no copy of an installer's credential:
// no selector tells them apart.
func keepKubeconfigs(in any) (any, error) {
	if s, ok := in.(*corev1.Secret); ok && !strings.HasSuffix(s.Name, "-"+string(secret.Kubeconfig)) &&
		!strings.HasSuffix(s.Name, view.InstallerCredentialsSuffix) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		}}, nil
	}
	return boundKubeconfigs(in)
}

// boundKubeconfigs keeps of a Secret what is read of it, and of a kubeconfig no more than is ever parsed: a tenant who labels many large
// Secrets must not fill the memory of the manager, which works for all tenants.
func boundKubeconfigs(in any) (any, error) {
	s, ok := in.(*corev1.Secret)
	if !ok {
		return in, nil
	}
	s.SetManagedFields(nil)
	delete(s.Annotations, corev1.LastAppliedConfigAnnotation)
	for key, value := range s.Data {
		switch key {
		case secret.KubeconfigDataName, assisted.KubeconfigKey:
			s.Data[key] = render.BoundKubeconfig(value)
		default:
			delete(s.Data, key)
		}
	}
	manager.ShareWords(s)
	return s, nil
}

// NewInstallerKubeconfigCache adds a cache of the Secrets in which the Assisted Installer publishes kubeconfigs to a manager. It is one of
// its own because they carry no label of the Cluster, and must not: Cluster API takes a labelled <name>-kubeconfig for the Cluster's
// (CONTRACT CP-58).
func NewInstallerKubeconfigCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Label:     labels.SelectorFromSet(labels.Set{assisted.HiveSecretTypeLabel: assisted.HiveSecretTypeKubeconfig}),
				Transform: boundKubeconfigs,
			},
		},
	}
	if namespace != metav1.NamespaceAll {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	c, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("create the cache of installer kubeconfigs: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("add the cache of installer kubeconfigs: %w", err)
	}
	return c, nil
}
