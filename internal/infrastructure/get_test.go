// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/metal3"
)

var reference = clusterv1.ContractVersionedObjectReference{APIGroup: metal3.InfrastructureGroup, Kind: metal3.MachineKind, Name: "m-0"}

// object is what a reference names, in API version v1beta2.
func object(ref clusterv1.ContractVersionedObjectReference) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.APIGroup, Version: "v1beta2", Kind: ref.Kind})
	o.SetNamespace("ns")
	o.SetName(ref.Name)
	return o
}

func TestGet(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: metal3.CRDMachines, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}},
	}
	down := errors.New("the API server is down")
	tests := map[string]struct {
		objects []client.Object
		err     error
		exists  bool
	}{
		"it exists":            {objects: []client.Object{crd, object(reference)}, exists: true},
		"it does not exist":    {objects: []client.Object{crd}},
		"its CRD is gone":      {},
		"nobody knows whether": {objects: []client.Object{crd, object(reference)}, err: down},
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
