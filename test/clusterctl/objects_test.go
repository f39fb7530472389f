// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// newClient returns a client that knows every kind that the tests read.
func newClient(t *testing.T, cp *localcontrolplane.ControlPlane) client.Client {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterctlv1.AddToScheme,
		bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	)
	g.Expect(builder.AddToScheme(scheme)).To(Succeed())
	cl, err := client.New(cp.Admin(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return cl
}
