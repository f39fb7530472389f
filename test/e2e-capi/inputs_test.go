// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"
	"os"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/util/yaml"
)

// createInputs makes what a user brings in the namespace of a spec: the pull secret, and BareMetalHosts with their BMC Secrets. It returns
// when the hosts are available. When the spec has ended, it waits until the namespace and all in it are gone: the next spec has the same
// hosts.
func createInputs(ctx context.Context) func(framework.ClusterProxy, string) {
	return func(management framework.ClusterProxy, namespace string) {
		GinkgoHelper()
		config, c := environment.config, management.GetClient()
		if !*keepClusters {
			DeferCleanup(func() { expectGone(ctx, c, namespace) })
		}
		pullSecret, err := os.ReadFile(config.MustGetVariable("PULL_SECRET_FILE"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: config.MustGetVariable("OPENSHIFT_PULL_SECRET_NAME")},
			Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: pullSecret},
		})).To(Succeed())
		createHosts(ctx, c, namespace, config.MustGetVariable("HOSTS_FILE"))
		Eventually(func(g Gomega) {
			hosts := &bmov1alpha1.BareMetalHostList{}
			g.Expect(c.List(ctx, hosts, client.InNamespace(namespace))).To(Succeed())
			g.Expect(hosts.Items).NotTo(BeEmpty())
			for i := range hosts.Items {
				host := &hosts.Items[i]
				g.Expect(host.Status.Provisioning.State).To(Equal(bmov1alpha1.StateAvailable), "BareMetalHost %s", host.Name)
			}
		}, config.GetIntervals("inputs", "wait-hosts")...).Should(Succeed())
	}
}

// createHosts makes the objects of a file in a namespace.
func createHosts(ctx context.Context, c client.Client, namespace, file string) {
	GinkgoHelper()
	manifests, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	objects, err := yaml.ToUnstructured(manifests)
	Expect(err).NotTo(HaveOccurred())
	for i := range objects {
		objects[i].SetNamespace(namespace)
		Expect(c.Create(ctx, &objects[i])).To(Succeed())
	}
}

func expectGone(ctx context.Context, c client.Client, namespace string) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}))
	}, environment.config.GetIntervals("inputs", "wait-delete-namespace")...).Should(BeTrue(), "namespace %s is still there", namespace)
}
