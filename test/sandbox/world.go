// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	simmetal3 "github.com/capi-openshift/agent-providers/test/sim/metal3"
	"github.com/capi-openshift/agent-providers/test/sim/workload"
)

const (
	// KubernetesVersion is what the simulated kubelets report by default: the templates' KUBERNETES_VERSION.
	KubernetesVersion = "v1.33.4"
	// OpenShiftVersion is the release that is installed: the templates' OPENSHIFT_VERSION.
	OpenShiftVersion = "4.20.0"
)

// clusterCacheArgs shorten a wait that is right for a data centre and would be most of a sandbox's run.
var clusterCacheArgs = []string{"--clustercache-retry-interval=2s"}

// metal3CRDs are those of each generation of Cluster API Provider Metal3, named by the newest version of its API: v1beta1 alone, or
// v1beta2, which is then the storage version, beside v1beta1.
var metal3CRDs = map[string]localcontrolplane.CRDGroup{
	"v1beta1": localcontrolplane.CRDsMetal3, "v1beta2": localcontrolplane.CRDsMetal3V1Beta2,
}

// Metal3Versions returns what WorldOptions.Metal3 may be.
func Metal3Versions() []string { return slices.Sorted(maps.Keys(metal3CRDs)) }

// lateCRDs are of projects that are installed after the providers as often as before them.
func (o WorldOptions) lateCRDs() []localcontrolplane.CRDGroup {
	return []localcontrolplane.CRDGroup{
		o.metal3CRDs(), localcontrolplane.CRDsBareMetalHost, localcontrolplane.CRDsHive, localcontrolplane.CRDsAssisted,
	}
}

func (o WorldOptions) metal3CRDs() localcontrolplane.CRDGroup {
	return metal3CRDs[cmp.Or(o.Metal3, Metal3Versions()[0])]
}

// installedCRDs are those that WorldOptions.Install brings.
var installedCRDs = []localcontrolplane.CRDGroup{
	localcontrolplane.CRDsCore, localcontrolplane.CRDsProviders, localcontrolplane.CRDsMetal3,
}

// WorldOptions are the settings of a World. The zero value is a good one.
type WorldOptions struct {
	// Progress gets the lines about processes that are built and started. Default: no output.
	Progress io.Writer
	// Speed divides all simulated times: 2 is twice as fast. Zero means 1.
	Speed float64
	// Seed decides which host a Machine gets, as nobody can foresee of the real Metal3, and the identifiers of assisted-service: nothing may
	// depend on them. Zero means 1.
	Seed int64
	// Metal3 is the newest version of Cluster API Provider Metal3's API, one of Metal3Versions. Default: v1beta1.
	Metal3 string
	// Dir is where the management cluster's files go; see localcontrolplane.Options. KeepDir leaves it behind.
	Dir     string
	KeepDir bool
	// ServerEnv is the environment of etcd and of kube-apiservers; see localcontrolplane.Options.
	ServerEnv []string
	// Inspect changes what the inspection of a BareMetalHost finds.
	Inspect func(host *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails)
	// KubeletVersion is what the Nodes of the cluster with this ClusterDeployment report. Default: KubernetesVersion.
	KubeletVersion func(cluster types.NamespacedName) string
	// TokenLifetime is how long the tokens of installed clusters live at most; zero is as long as was asked for.
	TokenLifetime time.Duration
	// GracePeriod is the control plane provider's --remote-conditions-grace-period; zero is its default.
	GracePeriod time.Duration
	// LightAPIs lets this process play the API of every installed cluster, instead of a kube-apiserver for each.
	LightAPIs bool
	// AssistedWorkers is how many objects each controller of assisted-service reconciles at a time; 0: the simulator's default.
	AssistedWorkers int
	// WithoutManagers leaves the two managers out; StartManagers starts them later.
	WithoutManagers bool
	// LateCRDs starts both managers before any CRD of hive, assisted-service and Metal3 is there; InstallLateCRDs installs
	// them and starts the simulators. Until then Watch and the simulators are nil.
	LateCRDs bool
	// Beside is a World whose hosts and installed clusters this one's simulators share, as two management clusters of one data centre do. It
	// has to outlive this one.
	Beside *World
	// Install puts Cluster API core, both providers and Metal3's CRDs into the cluster, as clusterctl does, and starts core; the World then
	// runs both managers as they are installed. Default: the World installs everything from this repository.
	Install func(context.Context, *localcontrolplane.ControlPlane) error
	// Policies limits what the managers write by the admission policies that a user may apply; see WritePolicies.
	Policies bool
	// Adjust changes how a manager is run, before it is started. Default: nothing.
	Adjust func(*localcontrolplane.ControlPlane, *localcontrolplane.ManagerSpec)
}

func (o WorldOptions) speed() float64 {
	if o.Speed <= 0 {
		return 1
	}
	return o.Speed
}

func (o WorldOptions) seed() int64 { return cmp.Or(o.Seed, 1) }

func (o WorldOptions) printf(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}

// World is a management cluster with everything that installs clusters from it. Its methods are safe for concurrent use
// unless they say otherwise.
type World struct {
	// Management is the management cluster.
	Management *localcontrolplane.ControlPlane
	// Client reads and writes past every cache, as cluster-admin.
	Client client.Client
	// Watch waits for changes.
	Watch *Watch
	// Bootstrap and ControlPlane are our managers; nil until StartManagers.
	Bootstrap, ControlPlane *localcontrolplane.Manager
	// Metal3, Assisted and Workload are the simulators, with their knobs for faults.
	Metal3   *simmetal3.Simulator
	Assisted *assisted.Simulator
	Workload *workload.Manager
	// Metal is the data centre, which is shared with WorldOptions.Beside.
	Metal *assisted.Metal

	opts       WorldOptions
	simulators *simulators
}

// NewWorld brings up the management cluster with all CRDs, Cluster API core, the simulators and both managers. End it
// with Stop, also when it runs in a test that fails.
func NewWorld(ctx context.Context, opts WorldOptions) (*World, error) {
	if opts.metal3CRDs() == "" {
		return nil, fmt.Errorf("unknown version %q of Metal3's API: choose one of %v", opts.Metal3, Metal3Versions())
	}
	cp, err := localcontrolplane.Start(ctx, localcontrolplane.Options{
		Progress: opts.Progress, Dir: opts.Dir, KeepDir: opts.KeepDir, ServerEnv: opts.ServerEnv,
	})
	if err != nil {
		return nil, err
	}
	w := &World{Management: cp, opts: opts}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// crds returns those that the World installs before anything runs.
func (o WorldOptions) crds() []localcontrolplane.CRDGroup {
	groups := localcontrolplane.AllCRDs()
	groups[slices.Index(groups, localcontrolplane.CRDsMetal3)] = o.metal3CRDs()
	return slices.DeleteFunc(groups, func(group localcontrolplane.CRDGroup) bool {
		return o.LateCRDs && slices.Contains(o.lateCRDs(), group) || o.Install != nil && slices.Contains(installedCRDs, group)
	})
}

func (w *World) start(ctx context.Context) error {
	if err := w.Management.InstallCRDs(ctx, w.opts.crds()...); err != nil {
		return err
	}
	if err := w.startCore(ctx); err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if w.Client, err = client.New(unlimited(w.Management.Admin()), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot create the sandbox's client: %w", err)
	}
	if w.opts.Policies {
		if err := ApplyPolicies(ctx, w.Client, w.Management.Tools().Root()); err != nil {
			return err
		}
	}
	if w.opts.LateCRDs {
		return w.StartManagers(ctx)
	}
	if err := w.startSimulators(ctx); err != nil || w.opts.WithoutManagers {
		return err
	}
	return w.StartManagers(ctx)
}

func (w *World) startCore(ctx context.Context) error {
	if w.opts.Install != nil {
		return w.opts.Install(ctx, w.Management)
	}
	_, err := w.Management.StartCore(ctx)
	return err
}

// InstallLateCRDs ends what WorldOptions.LateCRDs begins.
func (w *World) InstallLateCRDs(ctx context.Context) error {
	if err := w.Management.InstallCRDs(ctx, w.opts.lateCRDs()...); err != nil {
		return err
	}
	return w.startSimulators(ctx)
}

func (w *World) startSimulators(ctx context.Context) error {
	var err error
	if w.Watch, err = newWatch(ctx, unlimited(w.Management.Admin()), w.Client.Scheme()); err != nil {
		return err
	}
	if w.simulators, err = startSimulators(ctx, w.Management, w.opts); err != nil {
		return err
	}
	w.Metal3, w.Assisted, w.Workload, w.Metal = w.simulators.metal3, w.simulators.assisted, w.simulators.workload, w.simulators.metal
	return w.OfferOSImages(ctx, firstOSImage)
}

// StartManagers builds both managers and starts them.
func (w *World) StartManagers(ctx context.Context) error {
	if err := w.StartBootstrap(ctx); err != nil {
		return err
	}
	return w.StartControlPlane(ctx)
}

// StartBootstrap builds the bootstrap provider's manager and starts it. With WorldOptions.Install, one that was stopped is started again as
// it is installed now.
func (w *World) StartBootstrap(ctx context.Context) error {
	var err error
	w.Bootstrap, err = w.startManager(ctx, localcontrolplane.BootstrapManager(), w.Bootstrap)
	return err
}

// StartControlPlane does the same for the control plane provider's manager.
func (w *World) StartControlPlane(ctx context.Context) error {
	spec := localcontrolplane.ControlPlaneManager()
	spec.Args = slices.Concat(spec.Args, clusterCacheArgs)
	if w.opts.GracePeriod > 0 {
		spec.Args = append(spec.Args, "--remote-conditions-grace-period="+w.opts.GracePeriod.String())
	}
	var err error
	w.ControlPlane, err = w.startManager(ctx, spec, w.ControlPlane)
	return err
}

// startManager starts a manager, in place of a former one that has ended, if there is one.
func (w *World) startManager(
	ctx context.Context, spec localcontrolplane.ManagerSpec, former *localcontrolplane.Manager,
) (*localcontrolplane.Manager, error) {
	if former != nil {
		if err := former.DropLease(ctx, w.Client); err != nil {
			return nil, err
		}
	}
	if w.opts.Adjust != nil {
		w.opts.Adjust(w.Management, &spec)
	}
	if w.opts.Install != nil {
		return w.Management.RunInstalled(ctx, spec)
	}
	return w.Management.StartManager(ctx, spec)
}

// Change edits an object as a user would: it sends what change has done to the object.
func (w *World) Change(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := w.Client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot change %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// Stop ends everything and removes all files.
func (w *World) Stop() error {
	var errs []error
	if w.Watch != nil {
		w.Watch.Stop()
	}
	if w.simulators != nil {
		errs = append(errs, w.simulators.stopAll())
	}
	return errors.Join(append(errs, w.Management.Stop())...)
}

// unlimited returns a copy of config without a limit on requests: the sandbox's own must not be what is waited for.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// file returns the path of a file of the sandbox's own in the management cluster's folder, which goes with the World.
func (w *World) file(name string) (string, error) {
	dir := filepath.Join(w.Management.Dir(), "sandbox")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the sandbox's folder: %w", err)
	}
	return filepath.Join(dir, name), nil
}
