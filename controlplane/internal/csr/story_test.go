// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestRealAPIServer lets a real API server play the installed cluster: it sets who has sent a request, and takes the approval or refuses it.
func TestRealAPIServer(t *testing.T) {
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	remote, err := client.New(cp.Admin(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	created := node()
	g.Expect(remote.Create(t.Context(), created)).To(Succeed())
	created.Status = node().Status
	g.Expect(remote.Status().Update(t.Context(), created)).To(Succeed())

	own := send(t, cp.Admin(), scheme, "own", template().DNSNames...)
	foreign := send(t, cp.Admin(), scheme, "foreign", "n", "api.example.com")

	cluster := workload.Cached{Cache: clustercache.NewFakeClusterCache(remote, clusterKey, "servingcertificates/c")}
	r, recorder := reconciler(t, &installed{}, unchanged)
	r.Certificates, r.now = cluster, time.Now
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Get(t.Context(), client.ObjectKeyFromObject(own), own)).To(Succeed())
	g.Expect(own.Status.Conditions).To(ConsistOf(And(HaveField("Type", certificatesv1.CertificateApproved), HaveField("Status", corev1.ConditionTrue))))
	g.Expect(remote.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	g.Expect(foreign.Status.Conditions).To(BeEmpty())
	g.Expect(recorder.Events).To(Receive(ContainSubstring("api.example.com")))

	// The connection's cache asks for requests of this signer only.
	list := &certificatesv1.CertificateSigningRequestList{}
	g.Expect(remote.List(t.Context(), list, client.MatchingFields{"spec.signerName": certificatesv1.KubeletServingSignerName})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(2))
}

// send makes a request as the kubelet of the Node does.
func send(t *testing.T, admin *rest.Config, scheme *runtime.Scheme, name string, dnsNames ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	g := NewWithT(t)
	asked := template()
	asked.DNSNames = dnsNames
	r := request(t, asked)
	r.Name, r.UID = name, ""
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: r.Spec.Username, Groups: r.Spec.Groups}
	kubelet, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kubelet.Create(t.Context(), r)).To(Succeed())
	return r
}
