// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	settleTimeout = 2 * time.Minute
	metal3Group   = "infrastructure.cluster.x-k8s.io"
)

// TestControlPlane walks through one control plane from start to stop; its steps build on each other.
func TestControlPlane(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	cp, err := Start(ctx, Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	stopped := false
	defer func() {
		if !stopped {
			_ = cp.Stop()
		}
	}()
	cl := newClient(t, cp.Admin())

	t.Run("kubernetes", func(t *testing.T) { checkKubernetes(ctx, t, cp, cl) })
	t.Run("objects past the API server", func(t *testing.T) { checkStore(ctx, t, cp, cl) })
	t.Run("core", func(t *testing.T) { checkCore(ctx, t, cp, cl) })
	t.Run("CRDs in two steps", func(t *testing.T) {
		NewWithT(t).Expect(cp.InstallCRDs(ctx, CRDsBareMetalHost, CRDsHive, CRDsAssisted, CRDsCertManager)).To(Succeed())
	})
	t.Run("manager", func(t *testing.T) { checkManager(ctx, t, cp, cl) })
	t.Run("installed cluster", func(t *testing.T) { checkAPIServer(ctx, t, cp) })
	t.Run("crash of the apiserver", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(cp.Kill("kube-apiserver")).To(Succeed())
		g.Expect(cl.List(ctx, &corev1.NamespaceList{})).NotTo(Succeed())
		g.Expect(cp.Restart(ctx, "kube-apiserver")).To(Succeed())
		g.Expect(cl.List(ctx, &corev1.NamespaceList{})).To(Succeed())
	})

	pids := map[string]int{}
	for _, process := range cp.processes {
		pids[process.Name()] = process.PID()
	}
	g.Expect(pids).To(HaveKey("capi-core"))
	stopped = true
	g.Expect(cp.Stop()).To(Succeed())
	for name, pid := range pids {
		g.Expect(alive(pid)).To(BeFalse(), name)
	}
	g.Expect(cp.Dir()).NotTo(BeADirectory())
	g.Expect(cp.Stop()).To(Succeed(), "stopping twice does nothing")
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	cl, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return cl
}

// checkStore stores objects, which the API server has with their UIDs and a resource version each, and erases those of a namespace. Objects
// that share a resource version could be missed by a watch that begins between them.
func checkStore(ctx context.Context, t *testing.T, cp *ControlPlane, cl client.Client) {
	const count = 100
	g := NewWithT(t)
	var objects []StoredObject
	for i := range count {
		for _, namespace := range []string{"stored", "stored-too"} {
			uid := fmt.Sprintf("%s-%d", namespace, i)
			data := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"c-%d","uid":%q},"data":{"a":"b"}}`,
				namespace, i, uid)
			objects = append(objects, StoredObject{Resource: "configmaps", Namespace: namespace, Name: fmt.Sprintf("c-%d", i), Data: []byte(data)})
		}
	}
	stored := func(namespace string) []corev1.ConfigMap {
		list := &corev1.ConfigMapList{}
		g.Expect(cl.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		return list.Items
	}
	g.Expect(cp.Store(ctx, objects)).To(Succeed())
	versions := sets.New[string]()
	for _, one := range append(stored("stored"), stored("stored-too")...) {
		versions.Insert(one.ResourceVersion)
	}
	g.Expect(versions).To(HaveLen(2 * count))
	first := stored("stored")[0]
	g.Expect(string(first.UID)).To(Equal("stored-0"))
	g.Expect(first.Data).To(Equal(map[string]string{"a": "b"}))
	g.Expect(cp.Erase(ctx, []StoredObject{{Resource: "configmaps", Namespace: "stored"}})).To(Succeed())
	g.Expect(stored("stored")).To(BeEmpty())
	g.Expect(stored("stored-too")).To(HaveLen(count))
}

// checkKubernetes checks what each process is for: the API, service accounts, garbage collection, namespaces, audit.
func checkKubernetes(ctx context.Context, t *testing.T, cp *ControlPlane, cl client.Client) {
	g := NewWithT(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	g.Expect(cl.Create(ctx, namespace)).To(Succeed())
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "first", Name: "owner"}}
	g.Expect(cl.Create(ctx, owner)).To(Succeed())
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "first", Name: "owned", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
	}}}}
	g.Expect(cl.Create(ctx, owned)).To(Succeed())
	g.Eventually(func() error {
		return cl.Get(ctx, client.ObjectKey{Namespace: "first", Name: "default"}, &corev1.ServiceAccount{})
	}, settleTimeout).Should(Succeed())
	g.Expect(cl.Delete(ctx, owner)).To(Succeed())
	g.Eventually(notFound(ctx, cl, owned), settleTimeout).Should(BeTrue())
	g.Expect(cl.Delete(ctx, namespace)).To(Succeed())
	g.Eventually(notFound(ctx, cl, namespace), settleTimeout).Should(BeTrue())

	events := auditEvents(t, cp)
	g.Expect(events).To(ContainElement(And(
		HaveField("Verb", "create"), HaveField("User.Username", "admin"),
		HaveField("ObjectRef.Resource", "configmaps"), HaveField("ObjectRef.Name", "owner"), HaveField("ResponseStatus.Code", int32(201)),
	)))
	g.Expect(events).To(ContainElement(HaveField("User.Username", "system:serviceaccount:kube-system:generic-garbage-collector")))
	g.Expect(events).NotTo(ContainElement(HaveField("Verb", BeElementOf("get", "list", "watch"))))
}

// checkCore checks that Cluster API core reconciles, defaults, validates and converts.
func checkCore(ctx context.Context, t *testing.T, cp *ControlPlane, cl client.Client) {
	g := NewWithT(t)
	g.Expect(cp.InstallCRDs(ctx, CRDsCore, CRDsMetal3)).To(Succeed())
	_, err := cp.StartCore(ctx)
	g.Expect(err).NotTo(HaveOccurred())

	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"},
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork:    clusterv1.ClusterNetwork{Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.128.0.0/144"}}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: metal3Group, Kind: "Metal3Cluster", Name: "demo"},
		},
	}
	g.Expect(cl.Create(ctx, cluster)).To(MatchError(ContainSubstring("spec.clusterNetwork.pods.cidrBlocks[0]")))
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.128.0.0/14"}
	g.Expect(cl.Create(ctx, cluster)).To(Succeed())
	g.Eventually(func() string {
		g.Expect(cl.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		return cluster.Status.Phase
	}, settleTimeout).Should(Equal(string(clusterv1.ClusterPhaseProvisioning)))

	workers := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"},
		Spec: clusterv1.MachineDeploymentSpec{ClusterName: "demo", Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
			ClusterName: "demo", Version: "1.33.4",
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: metal3Group, Kind: "Metal3MachineTemplate", Name: "workers"},
		}}},
	}
	g.Expect(cl.Create(ctx, workers)).To(Succeed())
	g.Expect(workers.Spec.Template.Spec.Version).To(Equal("v1.33.4"), "the defaulting webhook adds the v")

	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: "v1beta1", Kind: "Cluster"})
	g.Expect(cl.Get(ctx, client.ObjectKeyFromObject(cluster), old)).To(Succeed())
	apiVersion, _, err := unstructured.NestedString(old.Object, "spec", "infrastructureRef", "apiVersion")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(apiVersion).To(Equal(metal3Group + "/v1beta1"))
}

// checkManager checks flags, identity, rights and webhooks of a manager; the test binary plays it (playManager).
func checkManager(ctx context.Context, t *testing.T, cp *ControlPlane, cl client.Client) {
	g := NewWithT(t)
	manager, err := cp.StartManager(ctx, ManagerSpec{
		Name: "test", Binary: os.Args[0], Kustomize: "test/localcontrolplane/testdata/manager",
		Variables: map[string]string{"TEST_FLAVOR": "plum"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manager.User).To(Equal("system:serviceaccount:test-system:test-manager"))

	record := &corev1.ConfigMap{}
	g.Expect(cl.Get(ctx, client.ObjectKey{Namespace: manager.Namespace, Name: "record"}, record)).To(Succeed())
	g.Expect(record.Data).To(And(
		HaveKeyWithValue("secrets-forbidden", "true"), HaveKeyWithValue("leader-elect", "true"), HaveKeyWithValue("flavor", "plum"),
		HaveKeyWithValue("webhook-host", "127.0.0.1"), HaveKeyWithValue("diagnostics-address", HavePrefix("127.0.0.1:")),
	))
	g.Expect(auditEvents(t, cp)).To(ContainElement(And(
		HaveField("User.Username", manager.User), HaveField("ObjectRef.Name", "record"), HaveField("ResponseStatus.Code", int32(201)),
	)))
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "any"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	g.Expect(cl.Create(ctx, service)).To(MatchError(ContainSubstring("services.test.example.com")))
}

// checkAPIServer checks that an installed cluster's API is reached by its name and keeps its data while it is down.
func checkAPIServer(ctx context.Context, t *testing.T, cp *ControlPlane) {
	g := NewWithT(t)
	server, err := cp.StartAPIServer(ctx, APIServerOptions{Name: "demo", BindAddress: "127.10.1.5", SANs: []string{"api.demo.example.com"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.URL()).To(HavePrefix("https://127.10.1.5:"))

	kubeconfig, err := server.AdminKubeconfig("")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	config.ServerName = "api.demo.example.com"
	cl := newClient(t, config)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	g.Expect(cl.Create(ctx, kept)).To(Succeed())
	g.Expect(notFound(ctx, newClient(t, cp.Admin()), kept)()).To(BeTrue(), "the clusters share an etcd, not their data")

	g.Expect(server.Stop()).To(Succeed())
	g.Expect(cl.Get(ctx, client.ObjectKeyFromObject(kept), kept)).NotTo(Succeed())
	g.Expect(server.Start(ctx)).To(Succeed())
	g.Expect(cl.Get(ctx, client.ObjectKeyFromObject(kept), kept)).To(Succeed())

	_, err = cp.StartAPIServer(ctx, APIServerOptions{Name: "demo"})
	g.Expect(err).To(MatchError(ContainSubstring("exists already")))
	_, err = cp.StartAPIServer(ctx, APIServerOptions{Name: "open", BindAddress: "0.0.0.0"})
	g.Expect(err).To(MatchError(ContainSubstring("only loopback")))
}

func notFound(ctx context.Context, cl client.Client, object client.Object) func() bool {
	return func() bool { return apierrors.IsNotFound(cl.Get(ctx, client.ObjectKeyFromObject(object), object)) }
}

// auditEvents are those whose lines are whole: the API server may be writing another one.
func auditEvents(t *testing.T, cp *ControlPlane) []auditv1.Event {
	t.Helper()
	g := NewWithT(t)
	log, err := os.ReadFile(cp.AuditLog())
	g.Expect(err).NotTo(HaveOccurred())
	var events []auditv1.Event
	for line := range strings.Lines(string(log)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var event auditv1.Event
		g.Expect(json.Unmarshal([]byte(line), &event)).To(Succeed())
		events = append(events, event)
	}
	return events
}
