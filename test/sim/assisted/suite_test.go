// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/openshift/hive/apis/hive/v1/agent"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

var (
	restConfig *rest.Config
	management *localcontrolplane.ControlPlane
)

func TestMain(m *testing.M) {
	os.Exit(runSuite(m))
}

func runSuite(m *testing.M) int {
	// A failed comparison says what differs; the log lines of a dozen simulators would bury it.
	ctrl.SetLogger(logr.Discard())
	// The replays wait for most of their time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintf(os.Stderr, "cannot run four replays at a time: %v\n", err)
		return 1
	}
	ctx := context.Background()
	cp, err := localcontrolplane.Start(ctx, localcontrolplane.Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot start the management cluster: %v\n", err)
		return 1
	}
	code := 1
	if err := cp.InstallCRDs(
		ctx, localcontrolplane.CRDsHive, localcontrolplane.CRDsAssisted, localcontrolplane.CRDsBareMetalHost,
	); err != nil {
		fmt.Fprintf(os.Stderr, "cannot install the CRDs: %v\n", err)
	} else {
		restConfig, management = cp.Admin(), cp
		code = m.Run()
	}
	if err := cp.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot stop the management cluster: %v\n", err)
		return 1
	}
	return code
}

// fastDurations keep the order of events at a pace that a test likes.
func fastDurations() Durations {
	d := DefaultDurations().Scale(2)
	d.Tick = 20 * time.Millisecond
	d.Heartbeat = 1500 * time.Millisecond
	d.RebootTimeout = 3 * time.Second
	d.Churn = 0
	return d
}

// replayDurations leave every state long enough to be written and seen, also on a busy machine: the order of a recording is
// one of distances in time, which a late write must not close.
func replayDurations() Durations {
	d := DefaultDurations()
	d.Tick = 20 * time.Millisecond
	d.Monitor = 300 * time.Millisecond
	d.Discovery = 200 * time.Millisecond
	d.Inventory = 400 * time.Millisecond
	d.AgentPoll = 400 * time.Millisecond
	d.Stage = 600 * time.Millisecond
	d.Heartbeat = 2 * time.Second
	d.RebootTimeout = 4 * time.Second
	d.Churn = 0
	return d.Scale(0.5)
}

// fixture is a simulator in a namespace of its own.
type fixture struct {
	t         *testing.T
	ctx       context.Context
	sim       *Simulator
	client    client.WithWatch
	namespace string
}

func newFixture(t *testing.T, opts Options) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	scheme := runtime.NewScheme()
	must(t, AddToScheme(scheme))
	c, err := client.NewWithWatch(restConfig, client.Options{Scheme: scheme})
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sim-"}}
	must(t, c.Create(ctx, namespace))
	if opts.Durations == (Durations{}) {
		opts.Durations = fastDurations()
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace.Name: {}}},
	})
	must(t, err)
	f := &fixture{t: t, ctx: ctx, sim: New(opts), client: c, namespace: namespace.Name}
	must(t, f.sim.SetupWithManager(mgr))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the simulator's manager failed: %v", err)
		}
	})
	f.create(&corev1.Secret{
		ObjectMeta: f.meta("pull-secret"), Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	})
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.namespace, Name: name}
}

func (f *fixture) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: f.namespace, Name: name}
}

func (f *fixture) create(obj client.Object) {
	f.t.Helper()
	must(f.t, f.client.Create(f.ctx, obj))
}

// waitTimeout is long: simulated time stands still while anything is unwritten, and a busy machine writes slowly.
const waitTimeout = 5 * time.Minute

// eventually waits for a condition to hold.
func (f *fixture) eventually(what string, holds func() bool) {
	f.t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			f.t.Fatalf("waited %s for %s; hosts are %s", waitTimeout, what, f.hostStates())
		case <-ticker.C:
		}
	}
}

// hostStates says where every host is, for the messages of failed tests.
func (f *fixture) hostStates() string {
	var list aiv1.AgentList
	if err := f.client.List(f.ctx, &list, client.InNamespace(f.namespace)); err != nil {
		return err.Error()
	}
	var out []string
	for _, agent := range list.Items {
		out = append(out, fmt.Sprintf("%s %s %q", agent.Spec.Hostname, agent.Status.DebugInfo.State, agent.Status.DebugInfo.StateInfo))
	}
	var installs hiveext.AgentClusterInstallList
	if err := f.client.List(f.ctx, &installs, client.InNamespace(f.namespace)); err != nil {
		return err.Error()
	}
	for _, aci := range installs.Items {
		out = append(out, fmt.Sprintf("cluster %s %s %v", aci.Name, aci.Status.DebugInfo.State, aci.Status.Conditions))
	}
	return strings.Join(out, "; ")
}

func (f *fixture) infraEnv(name, cd string) {
	f.t.Helper()
	env := &aiv1.InfraEnv{ObjectMeta: f.meta(name), Spec: aiv1.InfraEnvSpec{PullSecretRef: &corev1.LocalObjectReference{Name: "pull-secret"}}}
	if cd != "" {
		env.Spec.ClusterRef = &aiv1.ClusterReference{Name: cd, Namespace: f.namespace}
	}
	f.create(env)
	f.waitURL(name)
}

func (f *fixture) waitURL(name string) {
	f.t.Helper()
	env := &aiv1.InfraEnv{}
	f.eventually("an ISO URL of InfraEnv "+name, func() bool {
		return f.client.Get(f.ctx, f.key(name), env) == nil && env.Status.ISODownloadURL != ""
	})
}

// infraEnvNamed reads an InfraEnv; it is empty when there is none.
func (f *fixture) infraEnvNamed(name string) *aiv1.InfraEnv {
	f.t.Helper()
	env := &aiv1.InfraEnv{ObjectMeta: f.meta(name)}
	if err := f.client.Get(f.ctx, f.key(name), env); client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	return env
}

// imageReason is the reason of an InfraEnv's one condition.
func (f *fixture) imageReason(name string) string {
	f.t.Helper()
	for _, c := range f.infraEnvNamed(name).Status.Conditions {
		return c.Reason
	}
	return ""
}

// cluster creates a ClusterDeployment and its AgentClusterInstall, multi-node with VIPs or single-node without.
func (f *fixture) cluster(name string, controlPlanes, workers int, held bool) {
	f.t.Helper()
	cd := &hivev1.ClusterDeployment{ObjectMeta: f.meta(name)}
	cd.Spec.ClusterName, cd.Spec.BaseDomain = name, "example.com"
	cd.Spec.Platform.AgentBareMetal = &agent.BareMetalPlatform{}
	cd.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull-secret"}
	cd.Spec.ClusterInstallRef = &hivev1.ClusterInstallLocalReference{
		Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall", Name: name,
	}
	f.create(cd)
	aci := &hiveext.AgentClusterInstall{ObjectMeta: f.meta(name)}
	aci.Spec.ClusterDeploymentRef.Name = name
	aci.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: controlPlanes, WorkerAgents: workers}
	aci.Spec.HoldInstallation = held
	aci.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "1.2.3.0/24"}}
	if controlPlanes > 1 {
		aci.Spec.APIVIPs, aci.Spec.IngressVIPs = []string{"1.2.3.5"}, []string{"1.2.3.6"}
	}
	f.create(aci)
	f.eventually("the conditions of AgentClusterInstall "+name, func() bool {
		return f.client.Get(f.ctx, f.key(name), aci) == nil && len(aci.Status.Conditions) > 0
	})
}

// boot starts a host and returns the name of its Agent.
func (f *fixture) boot(host, infraEnv string) string {
	f.t.Helper()
	hw := HostHardware{
		Hostname: host, Serial: f.namespace + host, Manufacturer: "Acme", ProductName: "Box",
		NICs: []NIC{{Name: "eno1", MAC: "52:54:00:00:00:01", IPs: []string{"1.2.3.100/24"}}},
	}
	must(f.t, f.sim.BootHost(f.key(host), f.key(infraEnv), hw))
	return hostID(hw)
}

func (f *fixture) agent(name string) *aiv1.Agent {
	f.t.Helper()
	agent := &aiv1.Agent{}
	if err := f.client.Get(f.ctx, f.key(name), agent); client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	return agent
}

func (f *fixture) waitAgent(name, state string) {
	f.t.Helper()
	f.eventually("Agent "+name+" in state "+state, func() bool { return f.agent(name).Status.DebugInfo.State == state })
}

func (f *fixture) aci(name string) *hiveext.AgentClusterInstall {
	f.t.Helper()
	aci := &hiveext.AgentClusterInstall{}
	if err := f.client.Get(f.ctx, f.key(name), aci); client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	return aci
}

func (f *fixture) waitCluster(name, state string) {
	f.t.Helper()
	f.eventually("AgentClusterInstall "+name+" in state "+state, func() bool { return f.aci(name).Status.DebugInfo.State == state })
}

func (f *fixture) patchAgent(name string, change func(*aiv1.Agent)) {
	f.t.Helper()
	agent := f.agent(name)
	before := agent.DeepCopy()
	change(agent)
	must(f.t, f.client.Patch(f.ctx, agent, client.MergeFrom(before)))
}

func (f *fixture) patchACI(name string, change func(*hiveext.AgentClusterInstall)) {
	f.t.Helper()
	aci := f.aci(name)
	before := aci.DeepCopy()
	change(aci)
	must(f.t, f.client.Patch(f.ctx, aci, client.MergeFrom(before)))
}
