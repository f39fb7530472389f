// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// TestFill: each kind is read once, by the API version that its CRD gives for the contract. One that cannot be read stops neither the
// others nor the manager.
func TestFill(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(errors.Join(apiextensionsv1.AddToScheme(scheme), bootstrapv1.AddToScheme(scheme))).To(Succeed())
	crd := func(name, version string) client.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: name + "." + metal3.InfrastructureGroup, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": version},
		}}
	}
	var read []string
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd("metal3machines", "v1beta2"), crd("metal3machinetemplates", "v1beta1")).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				kind := o.GetObjectKind().GroupVersionKind()
				if kind.Group != metal3.InfrastructureGroup {
					return c.Get(ctx, key, o, opts...)
				}
				read = append(read, kind.Version+" "+kind.Kind)
				return errors.New("forbidden")
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				read = append(read, "configs")
				return errors.New("no such kind")
			},
		}).Build()
	var told []string
	fill := &Fill{
		Client: c, Metal3: []string{"Metal3Other", metal3.MachineTemplateKind, metal3.MachineKind},
		Lists: []client.ObjectList{&bootstrapv1.OpenshiftAssistedConfigList{}},
		Log:   funcr.New(func(_, args string) { told = append(told, args) }, funcr.Options{Verbosity: 2}),
	}
	g.Expect(fill.Start(t.Context())).To(Succeed())
	g.Expect(read).To(Equal([]string{"v1beta1 Metal3MachineTemplate", "v1beta2 Metal3Machine", "configs"}))
	g.Expect(told).To(ConsistOf(ContainSubstring("forbidden"), ContainSubstring("forbidden"), ContainSubstring("no such kind")))
}
