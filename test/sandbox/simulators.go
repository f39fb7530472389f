// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
	simmetal3 "github.com/capi-openshift/agent-providers/test/sim/metal3"
	"github.com/capi-openshift/agent-providers/test/sim/workload"
)

const (
	// simulatorUser is the simulators' name in the audit log.
	simulatorUser  = "simulators"
	simulatorGroup = "system:masters"
	simulatorQPS   = 200
	simulatorBurst = 400

	apiDelay   = 500 * time.Millisecond
	joinDelay  = 300 * time.Millisecond
	readyDelay = 500 * time.Millisecond
	// operatorDelay lets the operators of the control plane be available before the installation is complete, and the last ones with it.
	operatorDelay = 300 * time.Millisecond
	// lightPoll is how often the Nodes of clusters are looked after of which there are many.
	lightPoll = time.Second
	// lostDelay is short: a real cluster takes 40 s to miss a Node.
	lostDelay = 2 * time.Second
)

// simulators play everything that needs metal. They run in one controller manager with an identity of their own.
type simulators struct {
	metal3   *simmetal3.Simulator
	assisted *assisted.Simulator
	workload *workload.Manager
	metal    *assisted.Metal

	log  *os.File
	stop context.CancelFunc
	done chan error

	mu       sync.Mutex
	hardware []func(*bmov1alpha1.BareMetalHost, assisted.HostHardware) assisted.HostHardware
}

// startSimulators starts the simulators; they end with stopAll.
func startSimulators(ctx context.Context, cp *localcontrolplane.ControlPlane, opts WorldOptions) (*simulators, error) {
	log, err := os.Create(filepath.Join(cp.Dir(), "logs", "simulators.log"))
	if err != nil {
		return nil, fmt.Errorf("cannot create the simulators' log: %w", err)
	}
	mgr, err := simulatorManager(cp, log)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s := &simulators{log: log, done: make(chan error, 1)}
	metal3Webhooks := leavingServer{Server: mgr.GetWebhookServer(), away: s.metal3Away}
	metal3Webhooks.Register(simmetal3.ConversionPath, simmetal3.Conversion())
	simmetal3.ServeAdmission(metal3Webhooks)
	assisted.ServeAdmission(leavingServer{Server: mgr.GetWebhookServer(), away: s.assistedAway}, mgr.GetWebhookServer(), mgr.GetAPIReader())
	webhooks := slices.Concat(simmetal3.AdmissionConfigurations(), assisted.AdmissionConfigurations())
	if err := cp.InstallWebhooks(ctx, localcontrolplane.Simulators, webhooks...); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := s.start(cp, mgr, opts); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return s, nil
}

func (s *simulators) start(cp *localcontrolplane.ControlPlane, mgr ctrl.Manager, opts WorldOptions) (err error) {
	speed := opts.speed()
	opts.printf("Metal3 chooses hosts in the order of seed %d", opts.seed())
	if opts.Beside != nil {
		s.workload, s.metal = opts.Beside.simulators.workload, opts.Beside.simulators.metal
	} else if err := s.buildDataCentre(cp, mgr, opts); err != nil {
		return err
	}
	s.metal3, err = simmetal3.SetupWithManager(mgr, simmetal3.Options{
		Speed: speed, Hardware: opts.inspected, UserData: s.metal.WriteConfigDrive, PowerOff: s.metal.PowerOff,
		Deprovisioned: s.metal.Deprovision, ShuffleSeed: ptr.To(opts.seed()), UserDataRace: true,
	})
	if err != nil {
		return err
	}
	s.assisted = assisted.New(assisted.Options{
		Seed: opts.seed(), Durations: assisted.DefaultDurations().Scale(speed), Metal: s.metal, Workload: s.workload, Hardware: s.hardwareOf,
		Workers: opts.AssistedWorkers,
	})
	if err := s.assisted.SetupWithManager(mgr); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- mgr.Start(ctx) }()
	select {
	case <-mgr.Elected():
		return nil
	case err := <-s.done:
		stop()
		return fmt.Errorf("the simulators ended: %w", err)
	}
}

// buildDataCentre makes the hosts, which are empty, and what runs the clusters that will be installed on them.
func (s *simulators) buildDataCentre(cp *localcontrolplane.ControlPlane, mgr ctrl.Manager, opts WorldOptions) error {
	speed := opts.speed()
	s.metal = assisted.NewMetal()
	servers, poll := workload.Local(cp), time.Duration(0)
	if opts.LightAPIs {
		servers, poll = workload.Light(), lightPoll
	}
	s.workload = workload.New(servers, workload.Options{
		Poll: poll, APIDelay: scaled(apiDelay, speed), JoinDelay: scaled(joinDelay, speed), ReadyDelay: scaled(readyDelay, speed),
		OperatorDelay: scaled(operatorDelay, speed), LostDelay: scaled(lostDelay, speed), Etcd: etcdDelays(speed),
		KubeletVersion: opts.KubeletVersion, Version: OpenShiftVersion, ServingCSRs: true,
		TokenLifetime: opts.TokenLifetime, Catalogue: catalogue(), Upgrade: upgradeDelays(speed),
		Endpoint: workload.ClusterEndpoint(mgr.GetAPIReader()), Report: reportFailures(opts),
	})
	if err := mgr.Add(manager.RunnableFunc(s.workload.Start)); err != nil {
		return fmt.Errorf("cannot add the simulator of installed clusters: %w", err)
	}
	return nil
}

// etcdDelays are how long etcd and its operator take for their steps. A member that gets a new revision does not serve for a moment.
func etcdDelays(speed float64) etcd.Options {
	return etcd.Options{
		Add: scaled(300*time.Millisecond, speed), Start: scaled(300*time.Millisecond, speed), Promote: scaled(500*time.Millisecond, speed),
		Revision: scaled(200*time.Millisecond, speed), Install: scaled(300*time.Millisecond, speed),
		Endpoints: scaled(200*time.Millisecond, speed), Restart: scaled(400*time.Millisecond, speed), PodGC: scaled(2*time.Second, speed),
		DegradedInertia: scaled(2*time.Second, speed), HealthInterval: scaled(time.Second, speed),
	}
}

func simulatorManager(cp *localcontrolplane.ControlPlane, log io.Writer) (ctrl.Manager, error) {
	kubeconfig, err := cp.Kubeconfig(simulatorUser, simulatorGroup)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the simulators' kubeconfig: %w", err)
	}
	config.QPS, config.Burst, config.UserAgent = simulatorQPS, simulatorBurst, "sandbox-simulators"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{assisted.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register the simulators' API types: %w", err)
		}
	}
	server, err := cp.WebhookServer(localcontrolplane.Simulators)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Logger:        textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log))),
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: server.Port, CertDir: server.CertDir}),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the simulators' manager: %w", err)
	}
	return mgr, nil
}

// reportFailures tells of failures of the installed clusters. A cluster whose API is coming up fails for moments, as it
// should, and says the same thing again and again.
func reportFailures(opts WorldOptions) func(types.NamespacedName, error) {
	var mu sync.Mutex
	last := map[types.NamespacedName]string{}
	return func(cluster types.NamespacedName, err error) {
		mu.Lock()
		defer mu.Unlock()
		if last[cluster] == err.Error() {
			return
		}
		last[cluster] = err.Error()
		opts.printf("simulator of cluster %s: %s", cluster, strings.TrimSpace(err.Error()))
	}
}

func scaled(d time.Duration, speed float64) time.Duration {
	return time.Duration(float64(d) / speed)
}

// hardwareOf is what a host's agent reports: what was inspected, unless a fault says otherwise.
func (s *simulators) hardwareOf(host *bmov1alpha1.BareMetalHost) assisted.HostHardware {
	s.mu.Lock()
	defer s.mu.Unlock()
	hardware := assisted.HardwareOf(host)
	for _, change := range s.hardware {
		hardware = change(host, hardware)
	}
	return hardware
}

// changeHardware changes what the hosts that boot from now on report.
func (s *simulators) changeHardware(change func(*bmov1alpha1.BareMetalHost, assisted.HostHardware) assisted.HostHardware) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hardware = append(s.hardware, change)
}

// leavingServer answers no request while its service is away.
type leavingServer struct {
	webhook.Server
	away func() bool
}

// Register adds a webhook of the service.
func (l leavingServer) Register(path string, hook http.Handler) {
	l.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.away() {
			panic(http.ErrAbortHandler) // The connection ends without an answer.
		}
		hook.ServeHTTP(w, r)
	}))
}

// metal3Away and assistedAway are called by requests only, none of which comes before the simulators were started.
func (s *simulators) metal3Away() bool { return s.metal3 != nil && s.metal3.Faults().IsAway() }

func (s *simulators) assistedAway() bool { return s.assisted != nil && s.assisted.Faults().IsAway() }

func (s *simulators) stopAll() error {
	s.stop()
	return errors.Join(<-s.done, s.log.Close())
}
