// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// TestForeignCRDs: a manager does not start beside another provider of the same kinds (DESIGN D1).
func TestForeignCRDs(t *testing.T) {
	crd := func(name string, stored []string, versions ...string) client.Object {
		o := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.Status.StoredVersions = stored
		for _, version := range versions {
			o.Spec.Versions = append(o.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: version})
		}
		return o
	}
	const configs, controlPlanes = "openshiftassistedconfigs.bootstrap.cluster.x-k8s.io",
		"openshiftassistedcontrolplanes.controlplane.cluster.x-k8s.io"
	broken := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("the API server is away")
	}}
	tests := []struct {
		name    string
		objects []client.Object
		funcs   interceptor.Funcs
		message string
	}{
		{name: "no CRDs"},
		{name: "ours", objects: []client.Object{crd(configs, []string{"v1beta1"}, "v1beta1"), crd(controlPlanes, nil, "v1beta1")}},
		{name: "other kinds", objects: []client.Object{crd("others.bootstrap.cluster.x-k8s.io", []string{"v1alpha1"}, "v1alpha1")}},
		{
			name:    "those of another provider",
			message: configs + " (v1alpha1, v1alpha2); " + controlPlanes + " (v1alpha3)",
			objects: []client.Object{
				crd(configs, []string{"v1alpha2"}, "v1alpha2", "v1alpha1"), crd(controlPlanes, nil, "v1alpha3"),
			},
		},
		{name: "ours over those of another provider, whose objects are stored", message: configs + " (v1alpha2)",
			objects: []client.Object{crd(configs, []string{"v1alpha2", "v1beta1"}, "v1beta1")}},
		{name: "unknown", funcs: broken, message: "the API server is away"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).WithInterceptorFuncs(tt.funcs).Build()
			err := checkCRDs(context.Background(), c)
			if tt.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.message)))
		})
	}
}

// TestOwnCRDs: the list is that of the CRDs of the release.
func TestOwnCRDs(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../../config/*/crd/bases/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.Unmarshal(data, crd)).To(Succeed())
		g.Expect(foreignVersions(crd)).To(BeEmpty(), crd.Name)
		names = append(names, crd.Name)
	}
	g.Expect(names).To(ConsistOf(ownCRDs))
}
