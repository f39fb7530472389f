// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// server is an API server with the CRDs of one CAPM3 API version and without any controller.
type server struct {
	config     *rest.Config
	kubeconfig []byte
	client     client.WithWatch
	shape      shape
}

// startControlPlane starts a control plane that ends with the test.
func startControlPlane(ctx context.Context, t *testing.T) *localcontrolplane.ControlPlane {
	t.Helper()
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	cp, err := localcontrolplane.Start(ctx, localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	return cp
}

// startServers starts one API server for each version of CAPM3's API, beside that of the control plane.
func startServers(ctx context.Context, t *testing.T, cp *localcontrolplane.ControlPlane) []*server {
	t.Helper()
	generated := crds(ctx, t, cp)
	return []*server{
		startServer(ctx, t, cp, "v1beta2", withV1Beta2(generated)),
		startServer(ctx, t, cp, "v1beta1", generated),
	}
}

// crds returns the CRDs of CAPI core, CAPM3 (v1beta1, the only version that can be generated) and BMO, without conversion webhooks.
func crds(ctx context.Context, t *testing.T, cp *localcontrolplane.ControlPlane) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g := NewWithT(t)
	g.Expect(cp.InstallCRDs(ctx, localcontrolplane.CRDsCore, localcontrolplane.CRDsMetal3, localcontrolplane.CRDsBareMetalHost)).To(Succeed())
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(newClient(t, cp.Admin()).List(ctx, list)).To(Succeed())
	installed := make([]*apiextensionsv1.CustomResourceDefinition, len(list.Items))
	for i := range list.Items {
		spec := list.Items[i].Spec
		spec.Conversion = nil
		installed[i] = &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: list.Items[i].Name}, Spec: spec}
	}
	return installed
}

// withV1Beta2 gives CAPM3's kinds the one version v1beta2, without a schema: its Go types cannot be had.
func withV1Beta2(generated []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	changed := make([]*apiextensionsv1.CustomResourceDefinition, len(generated))
	for i, crd := range generated {
		changed[i] = crd.DeepCopy()
		if crd.Spec.Group != infrastructureGroup || !strings.HasPrefix(crd.Name, "metal3") {
			continue
		}
		changed[i].Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1beta2", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}}
	}
	return changed
}

func startServer(
	ctx context.Context, t *testing.T, cp *localcontrolplane.ControlPlane, name string, crds []*apiextensionsv1.CustomResourceDefinition,
) *server {
	t.Helper()
	g := NewWithT(t)
	api, err := cp.StartAPIServer(ctx, localcontrolplane.APIServerOptions{Name: name})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(localcontrolplane.InstallCRDs(ctx, api.Config(), crds)).To(Succeed())
	kubeconfig, err := api.AdminKubeconfig("")
	g.Expect(err).NotTo(HaveOccurred())
	installed, err := installedShape(ctx, api.Config())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(installed.version).To(Equal(name))
	return &server{config: api.Config(), kubeconfig: kubeconfig, client: newClient(t, api.Config()), shape: installed}
}

func newClient(t *testing.T, cfg *rest.Config) client.WithWatch {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bmov1alpha1.AddToScheme,
	} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// startSimulator runs a simulator for one namespace until the test ends.
func startSimulator(ctx context.Context, t *testing.T, s *server, namespace string, options Options) *Simulator {
	t.Helper()
	g := NewWithT(t)
	mgr, err := ctrl.NewManager(s.config, ctrl.Options{
		Scheme:     runtime.NewScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	simulator, err := SetupWithManager(mgr, options)
	g.Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(running) }()
	t.Cleanup(func() {
		stop()
		g.Expect(<-done).To(Succeed())
	})
	return simulator
}
