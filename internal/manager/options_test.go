// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// managers are the two managers' own flags.
var managers = map[string]func(*Options, *pflag.FlagSet){
	"bootstrap":     (*Options).AddBootstrapFlags,
	"control plane": (*Options).AddControlPlaneFlags,
}

func flagsOf(own func(*Options, *pflag.FlagSet)) (*Options, *pflag.FlagSet) {
	o, fs := &Options{}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o.AddFlags(fs)
	own(o, fs)
	return o, fs
}

func TestContractFlags(t *testing.T) {
	t.Run("OP-4 every argument that the Cluster API operator may write into a Deployment is understood", func(t *testing.T) {
		kinds := map[string]string{"bootstrap": "openshiftassistedconfig", "control plane": "openshiftassistedcontrolplane"}
		for name, own := range managers {
			g := NewWithT(t)
			o, fs := flagsOf(own)
			g.Expect(fs.Parse([]string{
				"--leader-elect=true", "--diagnostics-address=:8443", "--insecure-diagnostics=true", "--webhook-port=9443", "--webhook-cert-dir=/certs",
				"--health-addr=:9440", "--profiler-address=localhost:6060", "--sync-period=1m", "--v=4", "--feature-gates=AllAlpha=true,AllBeta=false",
				"--" + kinds[name] + "-concurrency=5", "--max-concurrent-reconciles=3", "--namespace=ns",
			})).To(Succeed(), name)
			g.Expect(o.Validate()).To(Succeed(), name)
			g.Expect(o.SyncPeriod).To(Equal(time.Minute))
			g.Expect(o.Diagnostics.InsecureDiagnostics).To(BeTrue())
			g.Expect(o.Logs.Verbosity).To(BeEquivalentTo(4))
			g.Expect(o.Features.Enabled(logsv1.LoggingAlphaOptions)).To(BeTrue())
			g.Expect(o.Concurrency).To(Equal(3))
			g.Expect(o.ConfigConcurrency + o.ControlPlaneConcurrency).To(Equal(5))
		}
	})
	t.Run("CTL-14 both managers take a namespace", func(t *testing.T) {
		for name, own := range managers {
			g := NewWithT(t)
			o, fs := flagsOf(own)
			g.Expect(fs.Parse([]string{"--namespace=here"})).To(Succeed(), name)
			g.Expect(o.Namespace).To(Equal("here"))
			selector := cacheOptions(*o, Config{Name: name}, nil).DefaultFieldSelector.DeepCopySelector()
			namespace, exact := selector.RequiresExactMatch("metadata.namespace")
			g.Expect(exact).To(BeTrue())
			g.Expect(namespace).To(Equal("here"))
			g.Expect(selector.Empty()).To(BeFalse(), "controller-runtime skips empty ones")
			g.Expect(selector.String()).To(BeEmpty(), "the API server refuses it for kinds without namespaces")
		}
	})
}

// TestFlagsOfClusterAPI: who knows Cluster API's managers knows these. The list is that of its kubeadm control plane manager, without etcd,
// CRD migration and runtime extensions.
func TestFlagsOfClusterAPI(t *testing.T) {
	both := map[string]string{
		"leader-elect": "false", "leader-elect-lease-duration": "1m0s", "leader-elect-renew-deadline": "40s", "leader-elect-retry-period": "5s",
		"namespace": "", "watch-filter": "", "profiler-address": "", "contention-profiling": "false", "sync-period": "10m0s",
		"kube-api-qps": "300", "kube-api-burst": "600", "webhook-port": "9443", "webhook-cert-dir": "/tmp/k8s-webhook-server/serving-certs/",
		"webhook-cert-name": "tls.crt", "webhook-key-name": "tls.key", "health-addr": ":9440", "diagnostics-address": ":8443",
		"insecure-diagnostics": "false", "tls-min-version": "VersionTLS12", "tls-cipher-suites": "[]", "feature-gates": "", "v": "2",
		"logging-format": "text", "kubeconfig": "", "max-concurrent-reconciles": "100",
	}
	own := map[string]map[string]string{
		"bootstrap": {"openshiftassistedconfig-concurrency": "0", "agent-concurrency": "0"},
		"control plane": {"openshiftassistedcontrolplane-concurrency": "0", "clustercache-concurrency": "0", "clustercache-client-qps": "20",
			"clustercache-client-burst": "30", "remote-conditions-grace-period": "5m0s"},
	}
	for name, add := range managers {
		g := NewWithT(t)
		_, fs := flagsOf(add)
		for _, wanted := range []map[string]string{both, own[name]} {
			for flag, value := range wanted {
				g.Expect(fs.Lookup(flag)).To(HaveValue(HaveField("DefValue", value)), "--%s of the %s manager", flag, name)
			}
		}
		fs.VisitAll(func(flag *pflag.Flag) {
			g.Expect(flag.Usage).NotTo(BeEmpty(), "--%s of the %s manager has no usage text", flag.Name, name)
		})
	}
}

func TestControllerOptions(t *testing.T) {
	g := NewWithT(t)
	o := Options{Concurrency: 3}
	g.Expect(o.ControllerOptions(0).MaxConcurrentReconciles).To(Equal(3))
	g.Expect(o.ControllerOptions(5).MaxConcurrentReconciles).To(Equal(5))
}

func TestValidate(t *testing.T) {
	for flag, message := range map[string]string{
		"--remote-conditions-grace-period=1m":            "at least 2m",
		"--workload-token-lifetime=59m":                  "at least 1h",
		"--max-concurrent-reconciles=0":                  "at least 1",
		"--openshiftassistedcontrolplane-concurrency=-1": "at least 0",
		"--clustercache-concurrency=-1":                  "at least 0",
	} {
		g := NewWithT(t)
		o, fs := flagsOf((*Options).AddControlPlaneFlags)
		g.Expect(fs.Parse([]string{flag})).To(Succeed())
		g.Expect(o.Validate()).To(MatchError(ContainSubstring(message)), flag)
	}
}

// TestFeatureGates: a gate that does not exist is a mistake of the user's, and gated flags need theirs.
func TestFeatureGates(t *testing.T) {
	g := NewWithT(t)
	_, fs := flagsOf((*Options).AddBootstrapFlags)
	g.Expect(fs.Parse([]string{"--feature-gates=NoSuchFeature=true"})).To(MatchError(ContainSubstring("NoSuchFeature")))
	o, fs := flagsOf((*Options).AddBootstrapFlags)
	g.Expect(fs.Parse([]string{"--log-text-split-stream"})).To(Succeed())
	g.Expect(logsv1.Validate(o.Logs, o.Features, nil)).NotTo(BeEmpty())
	g.Expect(fs.Parse([]string{"--feature-gates=" + string(logsv1.LoggingAlphaOptions) + "=true"})).To(Succeed())
	g.Expect(logsv1.Validate(o.Logs, o.Features, nil)).To(BeEmpty())
	g.Expect(fs.Parse([]string{"--feature-gates="})).To(Succeed())
	other, _ := flagsOf((*Options).AddBootstrapFlags)
	g.Expect(other.Features.Enabled(featuregate.Feature("AllAlpha"))).To(BeFalse(), "managers in one process do not share gates")
}

// TestScheme: a Config's kinds come on top of those of both managers.
func TestScheme(t *testing.T) {
	g := NewWithT(t)
	scheme, err := Config{Name: "test"}.scheme()
	g.Expect(err).NotTo(HaveOccurred())
	for _, group := range []string{"cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "agent-install.openshift.io", "hive.openshift.io",
		"apiextensions.k8s.io"} {
		g.Expect(scheme.IsGroupRegistered(group)).To(BeTrue(), group)
	}
}

// TestRetriesOfOthersDoNotCount: however many objects fail again and again, another one that fails is looked at again at once; and each
// controller counts failures of its own.
func TestRetriesOfOthersDoNotCount(t *testing.T) {
	g := NewWithT(t)
	o := Options{Concurrency: 3}
	limiter := o.ControllerOptions(0).RateLimiter
	request := func(namespace, name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	for i := range 1000 {
		for range 3 {
			limiter.When(request("bad", fmt.Sprint(i)))
		}
	}
	g.Expect(limiter.When(request("good", "one"))).To(Equal(firstRetry))
	for range 30 {
		limiter.When(request("bad", "one"))
	}
	g.Expect(limiter.When(request("bad", "one"))).To(Equal(lastRetry))
	g.Expect(o.ControllerOptions(0).RateLimiter.When(request("bad", "one"))).To(Equal(firstRetry))
}
