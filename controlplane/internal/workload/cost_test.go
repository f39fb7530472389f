// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	simulated "github.com/capi-openshift/agent-providers/test/sim/workload"
)

// watches are what may be watched of a cluster, as far as the cost of a connection is concerned.
var watches = []struct {
	name  string
	watch func(ctx context.Context, c workload.Cached, cluster client.ObjectKey, s workload.Subscriber) error
}{
	{"nothing", func(context.Context, workload.Cached, client.ObjectKey, workload.Subscriber) error { return nil }},
	{"operators", func(ctx context.Context, c workload.Cached, cluster client.ObjectKey, s workload.Subscriber) error {
		_, err := c.Operators(ctx, cluster, s)
		return err
	}},
	{"version", func(ctx context.Context, c workload.Cached, cluster client.ObjectKey, s workload.Subscriber) error {
		_, err := c.Version(ctx, cluster, s)
		return err
	}},
	{"etcd", func(ctx context.Context, c workload.Cached, cluster client.ObjectKey, s workload.Subscriber) error {
		_, err := c.EtcdOperator(ctx, cluster, s)
		return err
	}},
	{"authorities", func(ctx context.Context, c workload.Cached, cluster client.ObjectKey, s workload.Subscriber) error {
		_, err := c.Authorities(ctx, cluster, s)
		return err
	}},
	{"account", func(ctx context.Context, c workload.Cached, cluster client.ObjectKey, s workload.Subscriber) error {
		_, err := c.AccountMissing(ctx, cluster, s)
		return err
	}},
	{"requests", func(ctx context.Context, c workload.Cached, cluster client.ObjectKey, s workload.Subscriber) error {
		_, err := c.ServingRequests(ctx, cluster, s)
		return err
	}},
}

// BenchmarkConnection measures what a connected, idle cluster costs: one API server plays all of them, with a certificate bundle for each
// kubeconfig, because connections of the same are shared. The resident set is read as it is, so that each size wants a process of its own:
//
//	go test -run '^$' -bench 'BenchmarkConnection/all/100$' -benchtime 1x ./controlplane/internal/workload
func BenchmarkConnection(b *testing.B) {
	names := []string{"all"}
	for _, w := range watches {
		names = append(names, w.name)
	}
	for _, name := range names {
		for _, n := range []int{25, 50, 100, 200} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				for range b.N {
					measure(b, name, n)
				}
			})
		}
	}
}

func measure(b *testing.B, name string, n int) {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	cp, err := localcontrolplane.Start(b.Context(), localcontrolplane.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, cp.Stop()) })
	must(b, cp.InstallCRDs(b.Context(), localcontrolplane.CRDsCore))
	must(b, localcontrolplane.InstallCRDs(b.Context(), cp.Admin(), simulated.CRDs()))
	hub := newHub(b, cp)
	hub.fill(b)
	hub.connect(b, name, 0, 5) // What is there once in a process.
	before := usage(b)
	hub.connect(b, name, 5, 5+n)
	settled := before[sockets] + float64(n) + float64(n)/10
	must(b, wait.PollUntilContextTimeout(b.Context(), time.Second, 3*time.Minute, false, func(context.Context) (bool, error) {
		return openSockets(b) <= settled, nil // The connections for large answers are closed after a while.
	}))
	after := usage(b)
	for i, unit := range []string{"heap-KiB/cluster", "stack-KiB/cluster", "rss-KiB/cluster", "goroutines/cluster", "sockets/cluster"} {
		b.ReportMetric((after[i]-before[i])/float64(n), unit)
	}
}

// hub is a manager with connections.
type hub struct {
	client.Client

	clusters   clustercache.ClusterCache
	controller controller.Controller
	kubeconfig []byte
	authority  []byte
}

func newHub(b *testing.B, cp *localcontrolplane.ControlPlane) *hub {
	b.Helper()
	scheme := kuberuntime.NewScheme()
	kinds := kuberuntime.SchemeBuilder{
		clientgoscheme.AddToScheme,
		clusterv1.AddToScheme,
		configv1.Install,
		operatorv1.Install,
		machineconfigv1.Install,
	}
	must(b, kinds.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(cp.Admin(), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	must(b, err)
	clusters, err := workload.NewClusterCache(b.Context(), mgr, manager.Options{
		ClusterCacheConcurrency: 4, ClusterCacheQPS: 20, ClusterCacheBurst: 30, Concurrency: 1,
	}, "benchmark")
	must(b, err)
	idle := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	woken, err := controller.New("benchmark-"+b.Name(), mgr, controller.Options{Reconciler: idle})
	must(b, err)
	go func() { must(b, mgr.Start(b.Context())) }()
	direct, err := client.New(cp.Admin(), client.Options{Scheme: scheme})
	must(b, err)
	kubeconfig, err := os.ReadFile(cp.AdminKubeconfig())
	must(b, err)
	return &hub{Client: direct, clusters: clusters, controller: woken, kubeconfig: kubeconfig, authority: cp.Admin().CAData}
}

// fill creates what is watched, as many of it and about as large as a real cluster has.
func (h *hub) fill(b *testing.B) {
	b.Helper()
	names := append(workload.OperatorNames(), "version-operator")
	for i := range 30 {
		names = append(names, fmt.Sprintf("operator-%d", i))
	}
	for _, name := range names {
		o := operator(name)
		h.create(b, o)
		for _, kind := range []configv1.ClusterStatusConditionType{"Available", "Progressing", "Degraded", "Upgradeable"} {
			o.Status.Conditions = append(o.Status.Conditions, configv1.ClusterOperatorStatusCondition{
				Type:               kind,
				Status:             configv1.ConditionTrue,
				Reason:             "AsExpected",
				Message:            strings.Repeat("message ", 20),
				LastTransitionTime: metav1.Now(),
			})
		}
		for i := range 15 {
			o.Status.RelatedObjects = append(
				o.Status.RelatedObjects,
				configv1.ObjectReference{Resource: "namespaces", Name: fmt.Sprint("namespace-", i)},
			)
		}
		must(b, h.Status().Update(b.Context(), o))
	}
	h.create(b, clusterVersion("3c1d"))
	h.create(b, &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
	for _, name := range []string{"openshift-config-managed", workload.AccountNamespace} {
		h.create(b, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	h.create(b, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "kube-apiserver-server-ca"},
		Data:       map[string]string{"ca-bundle.crt": strings.Repeat(string(h.authority), 5)},
	})
	h.create(b, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: workload.AccountNamespace, Name: workload.AccountName}})
	h.create(b, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "openshift-assisted-capi"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	})
}

func (h *hub) create(b *testing.B, o client.Object) {
	b.Helper()
	must(b, client.IgnoreAlreadyExists(h.Create(b.Context(), o)))
}

// connect adds Clusters and waits until all that is wanted of each has been read.
func (h *hub) connect(b *testing.B, name string, from, to int) {
	b.Helper()
	for i := from; i < to; i++ {
		h.add(b, key(i))
	}
	connected := workload.Cached{Cache: h.clusters}
	for i := from; i < to; i++ {
		must(b, wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
			return connected.Connected(ctx, key(i)), nil
		}))
		wakes := workload.Subscriber{Controller: h.controller, Request: ctrl.Request{NamespacedName: key(i)}}
		for _, w := range watches {
			if name == "all" || name == w.name {
				must(b, w.watch(b.Context(), connected, key(i), wakes))
			}
		}
	}
}

func key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("c-%d", i)}
}

// add adds a Cluster whose kubeconfig differs from all others in its certificates.
func (h *hub) add(b *testing.B, key types.NamespacedName) {
	b.Helper()
	config, err := clientcmd.Load(h.kubeconfig)
	must(b, err)
	for _, c := range config.Clusters {
		c.CertificateAuthorityData = append(bytes.Clone(c.CertificateAuthorityData), "\n# "+key.Name+"\n"...)
	}
	kubeconfig, err := clientcmd.Write(*config)
	must(b, err)
	h.create(b, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace,
			Name:      secret.Name(key.Name, secret.Kubeconfig),
			Labels:    map[string]string{clusterv1.ClusterNameLabel: key.Name},
		},
		Data: map[string][]byte{secret.KubeconfigDataName: kubeconfig},
	})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "controlplane.cluster.x-k8s.io", Kind: "OpenshiftAssistedControlPlane", Name: key.Name,
	}
	h.create(b, cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	must(b, h.Status().Update(b.Context(), cluster))
}

// usage is the memory of this process in KiB, and how many goroutines and sockets it has.
func usage(b *testing.B) []float64 {
	b.Helper()
	for range 6 { // Of an idle manager one every two minutes, each of which halves stacks that are too large.
		debug.FreeOSMemory()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	statm, err := os.ReadFile("/proc/self/statm")
	must(b, err)
	resident, err := strconv.Atoi(strings.Fields(string(statm))[1])
	must(b, err)
	return []float64{
		float64(stats.HeapAlloc) / 1024, float64(stats.StackInuse) / 1024, float64(resident * os.Getpagesize() / 1024),
		float64(runtime.NumGoroutine()), openSockets(b),
	}
}

// sockets is where usage has the number of sockets.
const sockets = 4

func openSockets(b *testing.B) float64 {
	b.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must(b, err)
	open := 0.
	for _, file := range files {
		if to, err := os.Readlink("/proc/self/fd/" + file.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			open++
		}
	}
	return open
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
