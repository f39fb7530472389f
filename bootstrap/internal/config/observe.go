// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// scope is all that one pass knows. observe fills it; nothing is read from the API server afterwards, and nothing in it changes but the
// config, on which status writes at the end of the pass, and what was read of it, when its records are written.
type scope struct {
	config *bootstrapv1.OpenshiftAssistedConfig
	// first is the config as it was read when the pass began.
	first *bootstrapv1.OpenshiftAssistedConfig
	// read is the config as it was read, or as the pass has written its records since.
	read *bootstrapv1.OpenshiftAssistedConfig
	// now is the time of the pass.
	now time.Time
	// machine is the owner; nil when it is gone, which is only possible during deletion.
	machine *clusterv1.Machine
	// cluster is nil when it is gone, which is only possible while the config or its Machine is being deleted.
	cluster *clusterv1.Cluster
	// hooked is true when the Machine has its pre-terminate hook.
	hooked bool

	// missingCRDs are the CRDs that are needed and not served; the fields below are unset for their kinds.
	missingCRDs []string
	// inputs are what the InfraEnv is made of besides the config. The pull secret is empty while nothing names one; the trust bundle is read
	// while there is no InfraEnv, and then only if the config names a ConfigMap. The version of the OS image is the recorded one or, while no
	// InfraEnv is recorded, the one that fits the release of the cluster.
	inputs
	// trustBundleProblem says why there is no trust bundle; its zero value is that there is one, or that none is needed.
	trustBundleProblem fact.Fact
	// runs is the release that the cluster runs, and osImages are those that assisted-service has, of any release and architecture. Both are
	// read only while choosesOSImage, and empty when nobody tells.
	runs     string
	osImages []assisted.OSImage
	// infraEnvName is the InfraEnv recorded on the config or, if none is, the one that fits its spec; empty while it cannot be known.
	infraEnvName string
	// infraEnv is the InfraEnv of that name; nil when there is none.
	infraEnv *assisted.InfraEnv
	// infraMachine is the Machine's Metal3Machine; nil while it does not exist, and for infrastructure of others.
	infraMachine *unstructured.Unstructured
	// hosts are the BareMetalHosts that refer to the infrastructure machine or, while wantsNetworks, all of the namespace. They and the
	// InfraEnv belong to the cache.
	hosts []bmov1alpha1.BareMetalHost
	// networking is read only while wantsNetworks.
	networking
	// claimed are the Agents that are claimed for the Machine, living or not.
	claimed []assisted.Agent
	// secret is the Secret of the config's name, without its data; nil when there is none, and while the config is being deleted.
	secret *corev1.Secret
	// takesLongURLs is true when the infrastructure machine is served in an API version whose image URLs have no limit. It is looked up only
	// for a live ISO that needs it.
	takesLongURLs bool
}

// networking is what a pass knows of the networks of hosts.
type networking struct {
	// networks are the hosts with network data that the Machine may get, by name, and nmstates the NMStateConfigs of the InfraEnv, by name.
	// networksProblem is why the hosts cannot be known.
	networks        []hostNetwork
	nmstates        []assisted.NMStateConfig
	networksProblem error
}

// fresh reports whether the config gets its finalizer in this pass: nothing may be made before it has that.
func (s *scope) fresh() bool {
	return s.config.DeletionTimestamp.IsZero() && s.cluster != nil && !controllerutil.ContainsFinalizer(s.read, bootstrapv1.ConfigFinalizer)
}

// observe reads everything that the pass decides on.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	crds := []string{assisted.CRDInfraEnvs, assisted.CRDAgents, assisted.CRDClusterDeployments}
	if s.machine != nil {
		crds = append(crds, metal3.CRDs(s.machine.Spec.InfrastructureRef)...)
	}
	if s.config.Spec.StaticNetworking.Source != "" {
		crds = append(crds, assisted.CRDNMStateConfigs)
	}
	s.missingCRDs = r.Gate.Missing(crds...)
	reads := []struct {
		crd  string
		read func(context.Context, *scope) error
	}{
		{"", r.observeSecret},
		{"", r.observeHosts},
		{assisted.CRDClusterDeployments, r.observePullSecret},
		{assisted.CRDInfraEnvs, r.observeInfraEnv},
		{"", r.observeVersions},
		{assisted.CRDNMStateConfigs, r.observeNetworks},
		{assisted.CRDAgents, r.observeAgents},
	}
	// Each kind for itself: what exists of the config is still to be removed while other kinds are missing.
	for _, kind := range reads {
		if slices.Contains(s.missingCRDs, kind.crd) {
			continue
		}
		if err := kind.read(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// observeVersions looks up whether a live ISO with a URL that the infrastructure machine's API version does not take can be written in
// another one.
func (r *Reconciler) observeVersions(_ context.Context, s *scope) error {
	if s.infraEnv == nil || !tooLong(s.infraMachine, mediaToHandOver(s)) {
		return nil
	}
	gvk := s.infraMachine.GroupVersionKind()
	mapping, err := r.Client.RESTMapper().RESTMapping(gvk.GroupKind(), metal3.UnlimitedVersion)
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("look up served versions of %s: %w", gvk.Kind, err)
	}
	s.takesLongURLs = err == nil && mapping.GroupVersionKind.Version == metal3.UnlimitedVersion
	return nil
}

func (r *Reconciler) observeSecret(ctx context.Context, s *scope) error {
	if !s.config.DeletionTimestamp.IsZero() {
		return nil // It goes with the config.
	}
	var err error
	s.secret, err = r.secrets.dataSecret(ctx, s)
	return err
}

// observeHosts reads the Metal3Machine and the BareMetalHosts. Infrastructure of others is not read: nothing is written to it, and the
// manager has no role for it. A config that is being deleted needs none of them, so nothing about them can keep it from going.
func (r *Reconciler) observeHosts(ctx context.Context, s *scope) error {
	if s.machine == nil || !s.config.DeletionTimestamp.IsZero() || !metal3.IsMachineRef(s.machine.Spec.InfrastructureRef) {
		return nil
	}
	infra, err := infrastructure.Get(ctx, r.Client, s.machine.Spec.InfrastructureRef, s.machine.Namespace)
	if err != nil {
		return fmt.Errorf("read the infrastructure machine of Machine %s: %w", s.machine.Name, err)
	}
	s.infraMachine = infra
	if infra == nil || len(r.Gate.Missing(metal3.CRDBareMetalHosts)) > 0 {
		return nil
	}
	consumed, err := r.find(s).Hosts(ctx, index.HostConsumer, infra.GetName())
	if err != nil {
		return err
	}
	for _, host := range consumed {
		s.hosts = append(s.hosts, *host)
	}
	if !wantsNetworks(s) {
		return nil
	}
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.InNamespace(s.config.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list BareMetalHosts: %w", err)
	}
	s.hosts = hosts.Items
	return nil
}

// find finds objects of the config's namespace.
func (r *Reconciler) find(s *scope) index.Finder {
	return index.Finder{Reader: r.Client, Namespace: s.config.Namespace}
}

// observePullSecret takes the config's own pull secret or else that of the cluster's ClusterDeployment.
func (r *Reconciler) observePullSecret(ctx context.Context, s *scope) error {
	if s.pullSecret = s.config.Spec.PullSecretRef.Name; s.pullSecret != "" || s.cluster == nil {
		return nil
	}
	deployments, err := r.find(s).Deployments(ctx, s.cluster.Name)
	if err != nil {
		return err
	}
	for _, deployment := range deployments {
		if ref := deployment.Spec.PullSecretRef; ref != nil && deployment.DeletionTimestamp.IsZero() {
			s.pullSecret = ref.Name
		}
	}
	return nil
}

func (r *Reconciler) observeInfraEnv(ctx context.Context, s *scope) error {
	s.infraEnvName = s.config.Annotations[bootstrapv1.InfraEnvAnnotation]
	switch {
	case s.infraEnvName != "":
		s.osImageVersion = s.config.Annotations[bootstrapv1.OSImageVersionAnnotation]
		if err := r.readInfraEnv(ctx, s); err != nil || s.infraEnv != nil {
			return err
		}
		return r.observeTrustBundle(ctx, s)
	case s.cluster != nil && s.pullSecret != "":
		if err := r.observeTrustBundle(ctx, s); err != nil || s.trustBundleProblem.Reason != "" {
			return err
		}
		return r.chooseInfraEnv(ctx, s)
	}
	return nil
}

// chooseInfraEnv finds the InfraEnv for a config that records none. The one that was made without a version is taken as long as its image
// is the one that fits the cluster: otherwise every cluster would get a second one once it is installed.
func (r *Reconciler) chooseInfraEnv(ctx context.Context, s *scope) error {
	if err := r.observeRelease(ctx, s); err != nil {
		return err
	}
	if err := r.findInfraEnv(ctx, s); err != nil {
		return err
	}
	if version := fittingOSImage(s); version != "" && !hasOSImage(s.infraEnv, version) {
		s.osImageVersion = version
		return r.findInfraEnv(ctx, s)
	}
	return nil
}

// findInfraEnv reads the InfraEnv of the name that fits the config.
func (r *Reconciler) findInfraEnv(ctx context.Context, s *scope) error {
	name, err := infraEnvName(s.cluster.Name, s.config, s.inputs)
	if err != nil {
		return err
	}
	s.infraEnvName = name
	return r.readInfraEnv(ctx, s)
}

func (r *Reconciler) readInfraEnv(ctx context.Context, s *scope) error {
	var err error
	key := types.NamespacedName{Namespace: s.config.Namespace, Name: s.infraEnvName}
	s.infraEnv, err = kube.GetOrNil[assisted.InfraEnv](ctx, r.Client, key, client.UnsafeDisableDeepCopy) // It may have thousands of users.
	return err
}

// observeTrustBundle reads the ConfigMap of spec.additionalTrustBundleRef, unless that was done before in this pass.
func (r *Reconciler) observeTrustBundle(ctx context.Context, s *scope) error {
	name := s.config.Spec.AdditionalTrustBundleRef.Name
	if name == "" || s.trustBundle != "" || !s.config.DeletionTimestamp.IsZero() {
		return nil
	}
	bundle, err := kube.GetOrNil[corev1.ConfigMap](ctx, r.Client, types.NamespacedName{Namespace: s.config.Namespace, Name: name})
	if err != nil {
		return fmt.Errorf("spec.additionalTrustBundleRef: %w", err)
	}
	if bundle == nil {
		s.trustBundleProblem = fact.Waiting(
			bootstrapv1.WaitingForTrustBundleReason, "ConfigMap %s, which spec.additionalTrustBundleRef names, does not exist", name,
		)
		return nil
	}
	if problem := validation.TrustBundleProblem(bundle.Data[bootstrapv1.TrustBundleKey]); problem != "" {
		s.trustBundleProblem = fact.Waiting(
			bootstrapv1.TrustBundleInvalidReason, "key %s of ConfigMap %s, which spec.additionalTrustBundleRef names: %s",
			bootstrapv1.TrustBundleKey, name, problem,
		)
		return nil
	}
	s.trustBundle = bundle.Data[bootstrapv1.TrustBundleKey]
	return nil
}

func (r *Reconciler) observeAgents(ctx context.Context, s *scope) error {
	if s.config.DeletionTimestamp.IsZero() {
		return nil
	}
	ref := mapping.MachineRef(s.config)
	if ref == nil {
		return nil
	}
	agents, err := r.find(s).Agents(ctx, index.AgentClaim, ref.Name+"/"+string(ref.UID))
	for _, agent := range agents {
		s.claimed = append(s.claimed, *agent)
	}
	return err
}
