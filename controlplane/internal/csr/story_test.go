// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestRealAPIServer lets a real API server play the installed cluster: it sets who has sent a request, and takes the approval or refuses
// it.
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
	other := send(t, cp.Admin(), scheme, "other", "n", "oauth.example.com")

	cluster := workload.Cached{Cache: clustercache.NewFakeClusterCache(remote, clusterKey, "servingcertificates/c")}
	r, _ := reconciler(t, installed(), unchanged)
	r.Certificates, r.now, r.Recorder = cluster, time.Now, record(t, remote, cp.Admin())
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Get(t.Context(), client.ObjectKeyFromObject(own), own)).To(Succeed())
	g.Expect(own.Status.Conditions).
		To(ConsistOf(And(HaveField("Type", certificatesv1.CertificateApproved), HaveField("Status", corev1.ConditionTrue))))
	g.Expect(remote.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	g.Expect(foreign.Status.Conditions).To(BeEmpty())
	g.Eventually(func() ([]eventsv1.Event, error) {
		list := &eventsv1.EventList{}
		err := remote.List(t.Context(), list, client.InNamespace(clusterKey.Namespace))
		return list.Items, err
	}, time.Minute).Should(ConsistOf(
		And(HaveField("Note", ContainSubstring("api.example.com")), HaveField("Related.UID", foreign.UID)),
		And(HaveField("Note", ContainSubstring("oauth.example.com")), HaveField("Related.UID", other.UID)),
	))

	// The connection's cache asks for requests of this signer only.
	list := &certificatesv1.CertificateSigningRequestList{}
	g.Expect(remote.List(t.Context(), list, client.MatchingFields{"spec.signerName": certificatesv1.KubeletServingSignerName})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(3))
}

// record records events as the manager does: those that differ in their text only become one.
func record(t *testing.T, remote client.Client, admin *rest.Config) events.EventRecorder {
	t.Helper()
	g := NewWithT(t)
	g.Expect(remote.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterKey.Namespace}})).To(Succeed())
	sink, err := kubernetes.NewForConfig(admin)
	g.Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	g.Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: sink.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	g.Expect(broadcaster.StartRecordingToSinkWithContext(t.Context())).To(Succeed())
	return broadcaster.NewRecorder(scheme, "test")
}

// send makes a request as the kubelet of the Node does.
func send(
	t *testing.T, admin *rest.Config, scheme *runtime.Scheme, name string, dnsNames ...string,
) *certificatesv1.CertificateSigningRequest {
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
