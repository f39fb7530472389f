// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var reference = clusterv1.ContractVersionedObjectReference{APIGroup: InfrastructureGroup, Kind: MachineKind, Name: "m-0"}

func TestGet(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: CRDMachines, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}}}
	down := errors.New("the API server is down")
	tests := map[string]struct {
		objects []client.Object
		err     error
		exists  bool
	}{
		"it exists":            {objects: []client.Object{crd, machine("v1beta2")}, exists: true},
		"it does not exist":    {objects: []client.Object{crd}},
		"its CRD is gone":      {},
		"nobody knows whether": {objects: []client.Object{crd, machine("v1beta2")}, err: down},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
			get := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := o.(*unstructured.Unstructured); ok && tt.err != nil {
					return tt.err
				}
				return c.Get(ctx, key, o, opts...)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
			got, err := Get(context.Background(), c, reference, "ns")
			if tt.err != nil {
				g.Expect(err).To(MatchError(tt.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got != nil).To(Equal(tt.exists))
		})
	}
}

func TestCRDs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(CRDs(reference)).To(Equal([]string{"metal3machines.infrastructure.cluster.x-k8s.io", "baremetalhosts.metal3.io"}))
	template := reference
	template.Kind = "Metal3MachineTemplate"
	g.Expect(CRDs(template)).To(Equal(CRDs(reference)))
	g.Expect(CRDs(clusterv1.ContractVersionedObjectReference{APIGroup: InfrastructureGroup, Kind: "DevMachine"})).To(BeEmpty())
}
