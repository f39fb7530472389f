// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/workload"
)

const (
	bootstrapName    = "bootstrap"
	controlPlaneName = "controlplane"

	// apiPort is where the API of the installed cluster is.
	apiPort = 6443
	// lookInterval is between two looks at the managers' metrics, and restTime for how long they have to do nothing to have settled: a
	// controller lets an object pass once a second.
	lookInterval = 250 * time.Millisecond
	restTime     = 2 * time.Second
	// prepareTimeout bounds what does not depend on the size.
	prepareTimeout = 3 * time.Minute
)

// hub is a management cluster with copies of a cluster, and both managers.
type hub struct {
	cp       *localcontrolplane.ControlPlane
	client   client.WithWatch
	progress io.Writer

	template *template
	// copies are the clusters that there are.
	copies []copyOf
	next   int
	// replicas run, by the names of their processes.
	replicas map[string]*replica
	binaries map[string]string
	// samples are taken during a phase, by the names of the replicas.
	samples map[string][]sample

	installed *workload.Manager
	stop      context.CancelFunc
	stopped   chan error
}

// startHub brings up a hub without clusters, and the API of the installed one.
func startHub(ctx context.Context, progress io.Writer) (*hub, error) {
	cp, err := localcontrolplane.Start(ctx, localcontrolplane.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	h := &hub{
		cp: cp, progress: progress, replicas: map[string]*replica{}, binaries: map[string]string{}, samples: map[string][]sample{},
		stopped: make(chan error, 1),
	}
	if err := h.start(ctx); err != nil {
		return nil, errors.Join(err, h.end())
	}
	return h, nil
}

func (h *hub) start(ctx context.Context) error {
	if err := h.cp.InstallCRDs(ctx, localcontrolplane.AllCRDs()...); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, coordinationv1.AddToScheme, assisted.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register the API types: %w", err)
		}
	}
	config := h.cp.Admin()
	config.QPS = -1 // The harness must not be what is measured.
	var err error
	if h.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make the client of the harness: %w", err)
	}
	if err := h.convertNothing(ctx); err != nil {
		return err
	}
	for name, spec := range managerSpecs() {
		h.binaries[name] = filepath.Join(h.cp.Dir(), "programs", name)
		if err := h.cp.Tools().Build(ctx, spec.Package, h.binaries[name]); err != nil {
			return err
		}
	}
	return h.prepare(ctx)
}

// convertNothing sets the conversion of each CRD that names a webhook to None: the API server then changes only the apiVersion between two
// versions. The webhook of Cluster API's CRDs is its core's, which does not run here. The API server keeps a cache of each version: without
// this it would list all Machines each second to fill that of v1beta1, and fail each time.
func (h *hub) convertNothing(ctx context.Context) error {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := h.client.List(ctx, crds); err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	for i := range crds.Items {
		crd := &crds.Items[i]
		if crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
			continue
		}
		before := crd.DeepCopy()
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		if err := h.client.Patch(ctx, crd, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("patch the conversion of CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

func managerSpecs() map[string]localcontrolplane.ManagerSpec {
	return map[string]localcontrolplane.ManagerSpec{
		bootstrapName: localcontrolplane.BootstrapManager(), controlPlaneName: localcontrolplane.ControlPlaneManager(),
	}
}

// printf tells the user how far the run is.
func (h *hub) printf(format string, args ...any) { fmt.Fprintf(h.progress, format+"\n", args...) }

// end stops everything.
func (h *hub) end() error {
	var errs []error
	if h.stop != nil {
		h.stop()
		errs = append(errs, <-h.stopped)
	}
	return errors.Join(append(errs, h.cp.Stop())...)
}

// prepare makes the template: it stores the seed, lets both managers bring it up to date, and takes what they have left.
func (h *hub) prepare(ctx context.Context) error {
	seed, err := readSeed(recorded, time.Now())
	if err != nil {
		return err
	}
	agent, err := find(seed, "Agent", func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return err
	}
	if err := enlarge(agent); err != nil {
		return err
	}
	kubeconfig, err := h.startInstalled(ctx, seed, agent)
	if err != nil {
		return err
	}
	authority, err := workload.CertificateAuthority("ingress-operator@" + seedNamespace)
	if err != nil {
		return err
	}
	if kubeconfig, err = workload.AddCertificate(kubeconfig, authority); err != nil {
		return err
	}
	if seed, err = withCredentials(seed, kubeconfig); err != nil {
		return err
	}
	if err := h.store(ctx, seed); err != nil {
		return err
	}
	h.copies = []copyOf{{namespace: seedNamespace, workers: 1}}
	if _, err := h.run(ctx, prepareTimeout); err != nil {
		return fmt.Errorf("bring the seed up to date: %w", err)
	}
	if err := h.stopManagers(ctx); err != nil {
		return err
	}
	objects, err := capture(ctx, h.client, seedNamespace)
	if err != nil {
		return err
	}
	if h.template, err = newTemplate(objects, authority, time.Now()); err != nil {
		return err
	}
	return h.erase(ctx)
}

// store writes objects into etcd.
func (h *hub) store(ctx context.Context, objects []*unstructured.Unstructured) error {
	var all []localcontrolplane.StoredObject
	for _, o := range objects {
		object, err := stored(o)
		if err != nil {
			return err
		}
		all = append(all, object)
	}
	return h.cp.Store(ctx, all)
}

// startInstalled starts the API of the seed's cluster and returns its kubeconfig, as assisted-service publishes it.
func (h *hub) startInstalled(ctx context.Context, seed []*unstructured.Unstructured, agent *unstructured.Unstructured) ([]byte, error) {
	spec, err := installedSpec(seed, agent)
	if err != nil {
		return nil, err
	}
	h.installed = workload.New(workload.Local(h.cp), workload.Options{
		Endpoint: func(context.Context, simassisted.ClusterSpec) (string, int, error) { return seedAddress, apiPort, nil },
		Report:   func(_ types.NamespacedName, err error) { h.printf("simulator of the installed cluster: %v", err) },
	})
	background, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.stopped <- h.installed.Start(background) }()
	h.installed.Apply(spec)
	err = wait.PollUntilContextTimeout(ctx, lookInterval, prepareTimeout, true, func(context.Context) (bool, error) {
		status := h.installed.Status(spec.Key)
		return status.APIUp && status.Nodes[spec.Nodes[0].Name].Ready, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the API of the installed cluster: %w", err)
	}
	kubeconfig, ok := h.installed.Kubeconfig(spec.Key, true)
	if !ok {
		return nil, errors.New("the installed cluster has no kubeconfig")
	}
	return kubeconfig, nil
}

// installedSpec is what the seed's cluster is.
func installedSpec(seed []*unstructured.Unstructured, agent *unstructured.Unstructured) (simassisted.ClusterSpec, error) {
	deployment, err := find(seed, "ClusterDeployment", func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return simassisted.ClusterSpec{}, err
	}
	install, err := find(seed, "AgentClusterInstall", func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return simassisted.ClusterSpec{}, err
	}
	image, err := find(seed, "ClusterImageSet", func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return simassisted.ClusterSpec{}, err
	}
	labels, _, err := unstructured.NestedStringMap(agent.Object, "spec", "nodeLabels")
	return simassisted.ClusterSpec{
		Key:  types.NamespacedName{Namespace: deployment.GetNamespace(), Name: deployment.GetName()},
		Name: nested(deployment, "spec", "clusterName"), BaseDomain: nested(deployment, "spec", "baseDomain"),
		ClusterID:    nested(install, "spec", "clusterMetadata", "clusterID"),
		ReleaseImage: nested(image, "spec", "releaseImage"), Installing: true, Complete: true,
		Nodes: []simassisted.NodeSpec{{
			Name: nested(agent, "spec", "hostname"), Role: assisted.RoleMaster, Addresses: []string{seedAddress}, Labels: labels, Running: true,
			Architecture: assisted.DefaultCPUArchitecture,
		}},
	}, err
}

// run starts both managers and returns when they have settled.
func (h *hub) run(ctx context.Context, timeout time.Duration, args ...string) (time.Duration, error) {
	if err := h.startManagers(ctx, args...); err != nil {
		return 0, err
	}
	return h.settle(ctx, timeout)
}

func (h *hub) startManagers(ctx context.Context, args ...string) error {
	for name := range managerSpecs() {
		if err := h.startManager(ctx, name, name, args...); err != nil {
			return err
		}
	}
	return nil
}

// startManager starts a replica of a manager. A Lease of an earlier one is gone.
func (h *hub) startManager(ctx context.Context, manager, name string, args ...string) error {
	spec := managerSpecs()[manager]
	spec.Name, spec.Binary, spec.Args = name, h.binaries[manager], append(slices.Clone(spec.Args), args...)
	r, err := startReplica(ctx, h.cp, spec)
	if err != nil {
		return err
	}
	h.replicas[name] = r
	return nil
}

// stopManagers ends all replicas, and drops their Leases.
func (h *hub) stopManagers(ctx context.Context) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(h.replicas)) {
		r := h.replicas[name]
		errs = append(errs, r.Stop(), r.DropLease(ctx, h.client))
		delete(h.replicas, name)
	}
	return errors.Join(errs...)
}

// settle returns when all replicas have had nothing to do for a while, and every cluster is connected. It tells how long it took until they
// had nothing to do.
func (h *hub) settle(ctx context.Context, timeout time.Duration) (time.Duration, error) {
	begin := time.Now()
	last, changed, why := -1.0, begin, ""
	err := wait.PollUntilContextTimeout(ctx, lookInterval, timeout, true, func(ctx context.Context) (bool, error) {
		h.sample()
		passes, connected, idle := 0.0, 0.0, true
		for _, r := range h.replicas {
			g, err := r.gauges(ctx)
			if err != nil {
				return false, err
			}
			passes, connected, idle = passes+g.passes, connected+g.connected, idle && g.idle()
		}
		if now := time.Now(); passes != last || !idle || connected != float64(len(h.copies)) {
			last, changed = passes, now
		}
		why = fmt.Sprintf("%.0f passes, idle %t, %.0f of %d clusters connected", passes, idle, connected, len(h.copies))
		return time.Since(changed) >= restTime, nil
	})
	if err != nil {
		return 0, fmt.Errorf("wait for the managers to settle (%s): %w", why, err)
	}
	return changed.Sub(begin), nil
}

// grow makes clusters like the template's until there are this many, each in a namespace of its own.
func (h *hub) grow(ctx context.Context, size int) error {
	for len(h.copies) < size {
		if err := h.add(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// add makes a cluster in a namespace of its own, with workers that wait for their Agents.
func (h *hub) add(ctx context.Context, workers int) error {
	h.next++
	c := copyOf{number: h.next, namespace: fmt.Sprintf("site-%05d", h.next), workers: workers}
	objects, err := h.template.objects(c)
	if err != nil {
		return err
	}
	h.copies = append(h.copies, c)
	return h.cp.Store(ctx, objects)
}

// erase removes all clusters, while no manager runs.
func (h *hub) erase(ctx context.Context) error {
	for _, c := range h.copies {
		if err := h.eraseNamespace(ctx, c.namespace); err != nil {
			return err
		}
	}
	h.copies = nil
	return nil
}
