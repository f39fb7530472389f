// SPDX-License-Identifier: Apache-2.0

package light

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serve starts an API and returns a client, which learns the kinds from it and speaks protobuf where it can.
func serve(t *testing.T) (client.WithWatch, *rest.Config) {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewServer(New())
	t.Cleanup(server.CloseClientConnections)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	config := &rest.Config{Host: server.URL, QPS: -1}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return c, config
}

func newNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "host-0", Labels: map[string]string{"role": "master"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "first", Effect: corev1.TaintEffectNoSchedule}}},
	}
}

func TestWritesAreStored(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c, _ := serve(t)
	node := newNode()
	g.Expect(c.Create(ctx, node)).To(Succeed())
	g.Expect(node.UID).NotTo(BeEmpty())
	g.Expect(c.Create(ctx, newNode())).To(MatchError(apierrors.IsAlreadyExists, "AlreadyExists"))

	before := node.DeepCopy()
	node.Spec.ProviderID, node.Status.Phase = "metal3://host-0", corev1.NodeRunning
	g.Expect(c.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	g.Expect(node.Spec.ProviderID).To(Equal("metal3://host-0"))
	g.Expect(node.Status.Phase).To(BeEmpty(), "the status is a subresource")
	g.Expect(c.Update(ctx, before)).To(MatchError(apierrors.IsConflict, "Conflict"))

	before = node.DeepCopy()
	node.Status.Phase, node.Labels = corev1.NodeRunning, nil
	g.Expect(c.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	g.Expect(node.Status.Phase).To(Equal(corev1.NodeRunning))
	g.Expect(node.Labels).To(HaveKey("role"), "a subresource changes the status alone")

	before = node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "second", Effect: corev1.TaintEffectNoExecute})
	g.Expect(c.Patch(ctx, node, client.StrategicMergeFrom(before))).To(Succeed())
	g.Expect(node.Spec.Taints).To(HaveLen(2), "lists are merged by their keys")

	version := node.ResourceVersion
	g.Expect(c.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"providerID":"metal3://host-0"}}`)))).
		To(Succeed())
	g.Expect(node.ResourceVersion).To(Equal(version), "what changes nothing is no change")
}

func TestObjectsThatAreHeldAreDeletedLater(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c, _ := serve(t)
	node := newNode()
	node.Finalizers = []string{"example.com/held"}
	g.Expect(c.Create(ctx, node)).To(Succeed())
	g.Expect(c.Delete(ctx, node)).To(Succeed())
	g.Expect(c.Get(ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
	g.Expect(node.DeletionTimestamp).NotTo(BeNil())
	before := node.DeepCopy()
	node.Finalizers = nil
	g.Expect(c.Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	g.Expect(c.Get(ctx, client.ObjectKeyFromObject(node), node)).To(MatchError(apierrors.IsNotFound, "NotFound"))
	g.Expect(c.Delete(ctx, newNode())).To(MatchError(apierrors.IsNotFound, "NotFound"))
}

func TestAppliedObjectsAndTokens(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c, _ := serve(t)
	account := corev1ac.ServiceAccount("capi", "installed").WithLabels(map[string]string{"a": "b"})
	for range 2 {
		g.Expect(c.Apply(ctx, account, client.FieldOwner("test"), client.ForceOwnership)).To(Succeed())
	}
	stored := &corev1.ServiceAccount{}
	g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "installed", Name: "capi"}, stored)).To(Succeed())
	g.Expect(stored.Labels).To(HaveKeyWithValue("a", "b"))

	seconds := int64(7200)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	g.Expect(c.SubResource("token").Create(ctx, stored, request)).To(Succeed())
	g.Expect(request.Status.Token).NotTo(BeEmpty())
	g.Expect(request.Status.ExpirationTimestamp.Time).To(BeTemporally("~", time.Now().Add(2*time.Hour), time.Hour))
}

func TestKindsOfWhatIsStored(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c, config := serve(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, StringData: map[string]string{"key": "value"}}
	g.Expect(c.Create(ctx, secret)).To(Succeed())
	g.Expect(secret.Data).To(HaveKeyWithValue("key", []byte("value")))

	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:host-0", Groups: []string{"system:nodes"}}
	kubelet, err := client.New(config, client.Options{Scheme: c.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}}
	g.Expect(kubelet.Create(ctx, csr)).To(Succeed())
	g.Expect(csr.Name).To(MatchRegexp("^csr-.+"))
	g.Expect(csr.Spec.Username).To(Equal("system:node:host-0"))
	g.Expect(csr.Spec.Groups).To(ConsistOf("system:nodes"))
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue},
	}
	g.Expect(c.SubResource("approval").Update(ctx, csr)).To(Succeed())
	g.Expect(csr.Status.Conditions).To(HaveLen(1))

	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
		},
	}
	g.Expect(c.Create(ctx, crd)).To(Succeed())
	g.Expect(crd.Status.Conditions).To(ContainElement(HaveField("Type", apiextensionsv1.Established)))
	thing := &unstructured.Unstructured{}
	thing.SetAPIVersion("example.com/v1")
	thing.SetKind("Thing")
	thing.SetName("one")
	g.Expect(c.Create(ctx, thing)).To(Succeed())
}

func TestListsAndWatchesOfWhatIsSelected(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c, _ := serve(t)
	for _, name := range []string{"one", "two"} {
		node := newNode()
		node.Name, node.Labels["name"] = name, name
		g.Expect(c.Create(ctx, node)).To(Succeed())
	}
	list := &corev1.NodeList{}
	g.Expect(c.List(ctx, list, client.MatchingFields{"metadata.name": "two"})).To(Succeed())
	g.Expect(list.Items).To(HaveExactElements(HaveField("Name", "two")))
	g.Expect(c.List(ctx, list, client.MatchingLabels{"role": "master"})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(2))

	watching, stop := context.WithCancel(ctx)
	defer stop()
	events, err := c.Watch(watching, &corev1.NodeList{}, client.MatchingLabels{"name": "one"})
	g.Expect(err).NotTo(HaveOccurred())
	expect := func(what watch.EventType) {
		t.Helper()
		var event watch.Event
		g.Eventually(events.ResultChan()).WithTimeout(time.Minute).Should(Receive(&event))
		g.Expect(event.Type).To(Equal(what))
	}
	expect(watch.Added)
	node := &list.Items[0]
	change := func(o *corev1.Node, change func()) {
		t.Helper()
		before := o.DeepCopy()
		change()
		g.Expect(c.Patch(ctx, o, client.MergeFrom(before))).To(Succeed())
	}
	change(&list.Items[1], func() { list.Items[1].Spec.Unschedulable = true }) // Of the other, which nobody watches.
	change(node, func() { node.Spec.Unschedulable = true })
	expect(watch.Modified)
	change(node, func() { node.Labels["name"] = "other" })
	expect(watch.Deleted)
	change(node, func() { node.Labels["name"] = "one" })
	expect(watch.Added)
	g.Expect(c.Delete(ctx, node)).To(Succeed())
	expect(watch.Deleted)
}

// Who keeps a cache sees what there was, and what changes.
func TestCaches(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c, config := serve(t)
	node := newNode()
	g.Expect(c.Create(ctx, node)).To(Succeed())
	cached, err := cache.New(config, cache.Options{Scheme: c.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = cached.Start(running) }()
	found := &corev1.Node{}
	_, err = cached.GetInformer(ctx, found)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cached.WaitForCacheSync(ctx)).To(BeTrue())
	g.Expect(cached.Get(ctx, client.ObjectKeyFromObject(node), found)).To(Succeed())
	before := node.DeepCopy()
	node.Spec.ProviderID = "metal3://host-0"
	g.Expect(c.Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(cached.Get(ctx, client.ObjectKeyFromObject(node), found)).To(Succeed())
		g.Expect(found.Spec.ProviderID).To(Equal("metal3://host-0"))
	}).WithTimeout(time.Minute).Should(Succeed())
}
