// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// profileInstall installs single-node clusters from a template, all at once, with Cluster API core and the simulators of everything else.
const profileInstall = "install"

const (
	// coreManagerName is Cluster API core among the managers whose costs are told.
	coreManagerName = "core"
	// roomy is the part of the machine's memory that kube-apiserver, etcd and the simulators may each fill before they collect garbage. On the
	// two cores that they share with the managers, each collection delays the managers' writes: with a GOGC of 400 and 100 clusters,
	// kube-apiserver collected 38 times in 14 minutes. Memory that a process fills for the first time costs CPU time as well: with 30 clusters
	// and a quarter of 24 GiB, kube-apiserver took 1.4 times the CPU time that it took with a sixteenth, and a third longer for a write. On a
	// real hub, all three have CPUs of their own.
	roomy = 1.0 / 16
	// modelName and modelAddress are those of the cluster from whose manifests all others' are made, in every place where they are.
	modelName    = "site-model"
	modelAddress = "127.20.254.250"
	// modelIngress is the address after it.
	modelIngress = "127.20.254.251"
	// restAfterInstall is for how long is counted what is still written when all clusters are Available. Nothing ever rests in a fleet: the
	// simulators tell again and again that nothing has changed.
	restAfterInstall = 10 * time.Second
)

// fleet is a management cluster in which many clusters are installed at once.
type fleet struct {
	*hub
	world *sandbox.World
	core  *localcontrolplane.Process
	speed float64

	mu sync.Mutex
	// created and available are when the clusters were made, and when they were seen to be Available for the first time.
	created, available map[string]time.Time
}

// startFleet brings up a management cluster with its hosts.
func startFleet(ctx context.Context, progress io.Writer, size int, speed float64) (*fleet, error) {
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{
		Progress: progress, LightAPIs: true, Speed: speed, ServerEnv: []string{"GOGC=off", fmt.Sprintf("GOMEMLIMIT=%d", roomyBytes())},
		AssistedWorkers: 1, // Each controller of the real service has one.
		Adjust: func(_ *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
			spec.Args = append(spec.Args, insecureDiagnostics)
		},
	})
	if err != nil {
		return nil, err
	}
	f := &fleet{
		hub: &hub{
			cp: world.Management, progress: progress, samples: map[string][]sample{},
			replicas: map[string]*replica{bootstrapName: {Manager: world.Bootstrap}, controlPlaneName: {Manager: world.ControlPlane}},
		},
		world: world, speed: speed, created: map[string]time.Time{}, available: map[string]time.Time{},
	}
	for number := range size {
		f.copies = append(f.copies, copyOf{number: number + 1, namespace: fmt.Sprintf("site-%05d", number+1)})
	}
	if f.core, err = world.Management.Process(localcontrolplane.CoreProcess); err == nil {
		err = f.bringHosts(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, world.Stop())
	}
	world.Watch.OnChange(f.note)
	return f, nil
}

// bringHosts makes a host for each cluster, and returns when all are available.
func (f *fleet) bringHosts(ctx context.Context) error {
	requests, ctx := errgroup.WithContext(ctx)
	requests.SetLimit(writers)
	for _, c := range f.copies {
		requests.Go(func() error { return f.world.CreateInputs(ctx, c.namespace, 1) })
	}
	return requests.Wait()
}

// times are how long the installations took.
func (f *fleet) times() map[string]float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var took []float64
	for name, at := range f.available {
		took = append(took, at.Sub(f.created[name]).Seconds())
	}
	slices.Sort(took)
	times := map[string]float64{}
	addTimes(times, "manifests to Available", took)
	return times
}

// together is how many clusters were being installed at the same time, at most.
func (f *fleet) together() (most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.created {
		n := 0
		for name, created := range f.created {
			if end, ended := f.available[name]; !created.After(at) && (!ended || end.After(at)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// note notes when a cluster is Available for the first time.
func (f *fleet) note(o client.Object) {
	cluster, ok := o.(*clusterv1.Cluster)
	if !ok || !conditions.IsTrue(cluster, clusterv1.ClusterAvailableCondition) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.available[cluster.Namespace].IsZero() {
		f.available[cluster.Namespace] = time.Now()
	}
}

// manifests are those of all clusters, as clusterctl makes them from the template.
func (f *fleet) manifests(ctx context.Context) ([][]*unstructured.Unstructured, error) {
	model, err := f.world.Render(ctx, sandbox.ClusterRequest{
		Namespace: modelName, Name: modelName, Topology: sandbox.SNO, Address: modelAddress,
	})
	if err != nil {
		return nil, err
	}
	var all [][]*unstructured.Unstructured
	for _, c := range f.copies {
		text := bytes.ReplaceAll(model, []byte(modelName), []byte(c.namespace))
		text = bytes.ReplaceAll(text, []byte(modelAddress), []byte(addressOf(c.number, 0)))
		text = bytes.ReplaceAll(text, []byte(modelIngress), []byte(addressOf(c.number, 1)))
		objects, err := decodeManifests(text)
		if err != nil {
			return nil, err
		}
		all = append(all, objects)
	}
	return all, nil
}

// addressOf is one of the two addresses of a cluster: of its API, and of its ingress.
func addressOf(number, which int) string {
	const pairs = 100 // In the last byte.
	return fmt.Sprintf("127.20.%d.%d", number/pairs, 1+2*(number%pairs)+which)
}

func decodeManifests(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read the manifests of a cluster: %w", err)
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}

// install makes all clusters, at a steady rate within a window, and returns when they are Available. It tells how long that took.
func (f *fleet) install(ctx context.Context, all [][]*unstructured.Unstructured, window time.Duration) (time.Duration, error) {
	begin := time.Now()
	watching, stop := context.WithCancel(ctx)
	var sampling sync.WaitGroup
	sampling.Go(func() { f.watch(watching) })
	defer sampling.Wait()
	defer stop()
	ticker := time.NewTicker(max(window/time.Duration(len(all)), time.Microsecond))
	defer ticker.Stop()
	for _, objects := range all {
		if err := f.apply(ctx, objects); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticker.C:
		}
	}
	var checks []sandbox.Check
	for _, c := range f.copies {
		checks = append(checks, f.world.Running(client.ObjectKey{Namespace: c.namespace, Name: c.namespace}, 1))
	}
	if err := f.world.Watch.Await(ctx, f.timeout(), "all clusters to be Available", sandbox.All(checks...)); err != nil {
		return 0, err
	}
	return time.Since(begin), nil
}

// apply makes a cluster: one object after the other, as kubectl apply does with the manifests of all clusters.
func (f *fleet) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	f.mu.Lock()
	f.created[objects[0].GetNamespace()] = time.Now()
	f.mu.Unlock()
	for _, o := range objects {
		if err := f.world.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
		}
	}
	return nil
}

// roomyBytes is roomy in bytes, and 1 GiB at least: kube-apiserver would collect all the time with less than what it holds.
func roomyBytes() int64 { return int64(max(roomy*thisMachine().MemoryGiB, 1) * (1 << 30)) }

// timeout is for how long the installations may take on a busy machine, all at once.
func (f *fleet) timeout() time.Duration {
	return time.Duration(float64(4*time.Minute)/f.speed) + time.Duration(len(f.copies))*10*time.Second
}

// measureInstalls installs that many clusters in a management cluster of their own.
func (m *measurement) measureInstalls(ctx context.Context, size int) (err error) {
	fmt.Fprintf(m.opts.Progress, "%d installations\n", size)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(roomyBytes()))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f, err := startFleet(ctx, m.opts.Progress, size, cmp.Or(m.opts.Speed, 1))
	if err != nil {
		return err
	}
	defer func() { err = m.end(ctx, f.hub, fmt.Sprintf("%s-%d", profileInstall, size), f.world.Stop, err) }()
	all, err := f.manifests(ctx)
	if err != nil {
		return err
	}
	before, err := usageOf(f.core.PID())
	if err != nil {
		return err
	}
	result, err := f.phase(ctx, profileInstall, func(ctx context.Context) (time.Duration, error) {
		took, err := f.install(ctx, all, m.opts.Window)
		if err != nil {
			return 0, err
		}
		return took, f.rest(ctx, restAfterInstall)
	})
	if err != nil {
		return err
	}
	if err := f.tell(ctx, &result, before); err != nil {
		return err
	}
	return m.add(result, nil)
}

// tell adds what only installations have to a result.
func (f *fleet) tell(ctx context.Context, result *Result, core usage) error {
	used, err := usageOf(f.core.PID())
	if err != nil {
		return err
	}
	tallies, err := talliesSince(f.cp.AuditLog(), 0)
	if err != nil {
		return err
	}
	cost := Cost{CPUSeconds: used.cpuSeconds - core.cpuSeconds, RSSMiB: used.rssKiB / 1024, MaxRSSMiB: used.maxRSSKiB / 1024}
	if requested := tallies[localcontrolplane.CoreUser]; requested != nil {
		cost.Writes, cost.Refused, cost.Requests = requested.writes, requested.refused, requested.requests
	}
	result.Costs[coreManagerName] = cost
	for _, name := range []string{bootstrapName, controlPlaneName} {
		err := f.replicas[name].metrics(ctx, func(text io.Reader) error {
			answers, err := readAnswers(text, name)
			result.Answers = append(result.Answers, answers...)
			return err
		})
		if err != nil {
			return err
		}
	}
	steps, err := readSteps(f.cp.AuditLog(), 0, installSteps, map[string]string{
		bootstrapName: f.replicas[bootstrapName].User, controlPlaneName: f.replicas[controlPlaneName].User,
	})
	f.printf("%d of %d clusters were being installed at the same time", f.together(), len(f.copies))
	result.Times = f.times()
	for name, sorted := range steps {
		addTimes(result.Times, name, sorted)
	}
	return err
}
