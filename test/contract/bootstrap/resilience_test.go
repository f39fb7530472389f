// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// TestContractResilience does what the end-to-end framework of Cluster API does to a running cluster: a restored backup may have lost as
// much.
func TestContractResilience(t *testing.T) {
	t.Run("E2E-20 owners and finalizers that were lost come back", func(t *testing.T) {
		s, g, ctx := shared, NewWithT(t), t.Context()
		before := bonds(s.madeFor(ctx, g, s.installed.Namespace))
		for _, config := range s.configs(ctx, g, s.installed.Namespace) {
			s.always.forget(&config)
		}
		s.pauseCluster(t, s.installed, true)
		for _, object := range s.madeFor(ctx, g, s.installed.Namespace) {
			s.change(t, object, func() {
				object.SetOwnerReferences(nil)
				object.SetFinalizers(nil)
			})
		}
		s.pauseCluster(t, s.installed, false)
		eventually(t, func(g Gomega) {
			g.Expect(cmp.Diff(before, bonds(s.madeFor(ctx, g, s.installed.Namespace)))).To(BeEmpty())
		})
	})
}

// madeFor are the objects of a cluster that core and both providers make, or bind to it. InfraEnvs are left out: after the host was chosen
// a config does not join one again, because it cannot be told from that of a later Machine (DESIGN D22).
func (s *scene) madeFor(ctx context.Context, g Gomega, namespace string) []client.Object {
	infrastructure := func(kind string) client.ObjectList {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(metal3.InfrastructureGroup + "/" + metal3Version)
		list.SetKind(kind + "List")
		return list
	}
	var objects []client.Object
	for _, list := range []client.ObjectList{
		&bootstrapv1.OpenshiftAssistedConfigList{}, &controlplanev1.OpenshiftAssistedControlPlaneList{}, &clusterv1.MachineList{},
		&corev1.SecretList{},
		&hivev1.ClusterDeploymentList{}, &hiveext.AgentClusterInstallList{},
		infrastructure(metal3.MachineKind), infrastructure(metal3.MachineKind + "Template"),
	} {
		g.Expect(s.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			// Secrets of other types are assisted-service's and the user's.
			if secret, ok := o.(*corev1.Secret); !ok || secret.Type == clusterv1.ClusterSecretType {
				objects = append(objects, o.(client.Object))
			}
			return nil
		})).To(Succeed())
	}
	return objects
}

// bonds are the owners and finalizers of objects, each as text, by kind and name.
func bonds(objects []client.Object) map[string][]string {
	all := map[string][]string{}
	for _, object := range objects {
		bonds := object.GetFinalizers()
		for _, ref := range object.GetOwnerReferences() {
			bonds = append(bonds, ref.String())
		}
		slices.Sort(bonds)
		all[fmt.Sprintf("%T %s %s", object, object.GetObjectKind().GroupVersionKind().Kind, object.GetName())] = bonds
	}
	return all
}
