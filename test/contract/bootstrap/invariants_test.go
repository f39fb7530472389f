// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"fmt"
	"sync"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// invariants are rules that hold at every moment. They are checked at every change of an object, for as long as the world lives.
type invariants struct {
	world *sandbox.World

	mu sync.Mutex
	// published are the Secrets' names of the configs whose data is published.
	published map[types.UID]string
	// forgotten are configs of which a test has taken away what they had.
	forgotten map[types.UID]bool
	// images are the images of BareMetalHosts by their consumers.
	images map[string]string
	// broken are the rules that did not hold, with what was seen.
	broken map[string][]string
	// held are the rules that were seen to hold.
	held map[string]int
}

func watchInvariants(world *sandbox.World) *invariants {
	i := &invariants{
		world: world, published: map[types.UID]string{}, forgotten: map[types.UID]bool{},
		images: map[string]string{}, broken: map[string][]string{}, held: map[string]int{},
	}
	world.Watch.OnChange(i.check)
	return i
}

// forget excepts a config of which a test takes away what it has.
func (i *invariants) forget(config *bootstrapv1.OpenshiftAssistedConfig) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forgotten[config.UID] = true
}

// sawPublished reports whether the data of a config was looked at: a test may take it away after that.
func (i *invariants) sawPublished(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, seen := i.published[config.UID]
	return seen
}

// verdict returns how often a rule held, and what was seen when it did not.
func (i *invariants) verdict(rule string) (held int, broken []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held[rule], i.broken[rule]
}

func (i *invariants) expectf(holds bool, rule, format string, args ...any) {
	if holds {
		i.held[rule]++
		return
	}
	i.broken[rule] = append(i.broken[rule], fmt.Sprintf(format, args...))
}

func (i *invariants) check(object client.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch typed := object.(type) {
	case *bootstrapv1.OpenshiftAssistedConfig:
		i.checkConfig(typed)
	case *assisted.InfraEnv:
		i.checkInfraEnv(typed)
	case *bmov1alpha1.BareMetalHost:
		i.checkHost(typed)
	case *unstructured.Unstructured:
		i.checkMetal3Machine(typed)
	}
}

// exists reads an object. When nobody knows, it counts as existing.
func (i *invariants) exists(object client.Object, namespace, name string) bool {
	return !apierrors.IsNotFound(i.world.Client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, object))
}

// checkConfig: name and flag come together, after a complete Secret, and never go or change.
func (i *invariants) checkConfig(config *bootstrapv1.OpenshiftAssistedConfig) {
	if i.forgotten[config.UID] {
		return
	}
	created := ptr.Deref(config.Status.Initialization.DataSecretCreated, false)
	name := config.Status.DataSecretName
	if former, ok := i.published[config.UID]; ok {
		i.expectf(
			created && name == former, "BOOT-27", "config %s/%s: created %t, name %q, it was %q", config.Namespace, config.Name, created, name,
			former,
		)
		return
	}
	if !created {
		return
	}
	i.published[config.UID] = name
	i.expectf(name != "", "BOOT-25", "config %s/%s says that its data is created and names no Secret", config.Namespace, config.Name)
	if !config.DeletionTimestamp.IsZero() || !i.exists(&bootstrapv1.OpenshiftAssistedConfig{}, config.Namespace, config.Name) {
		return
	}
	data := &corev1.Secret{}
	i.expectf(i.exists(data, config.Namespace, name), "BOOT-25", "Secret %s/%s is published and does not exist", config.Namespace, name)
	i.expectf(
		data.Labels[clusterv1.ClusterNameLabel] != "", "BOOT-21", "Secret %s/%s is published without the Cluster's label", config.Namespace, name,
	)
	i.expectf(metav1.IsControlledBy(data, config), "BOOT-22", "Secret %s/%s is published without its owner", config.Namespace, name)
	i.expectf(data.Type == clusterv1.ClusterSecretType, "BOOT-24", "Secret %s/%s has type %q", config.Namespace, name, data.Type)
}

// checkInfraEnv: whoever has a part in an InfraEnv has the finalizer that lets it clean up.
func (i *invariants) checkInfraEnv(infraEnv *assisted.InfraEnv) {
	for _, ref := range infraEnv.OwnerReferences {
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		if !i.exists(config, infraEnv.Namespace, ref.Name) || config.UID != ref.UID || !config.DeletionTimestamp.IsZero() ||
			i.forgotten[config.UID] {
			continue
		}
		i.expectf(controllerutil.ContainsFinalizer(config, bootstrapv1.ConfigFinalizer), "BOOT-35",
			"config %s/%s has a part in InfraEnv %s and no finalizer", config.Namespace, config.Name, infraEnv.Name)
	}
}

// checkHost: the image that a Metal3Machine hands to its host is the live ISO from the start, and stays the same.
func (i *invariants) checkHost(host *bmov1alpha1.BareMetalHost) {
	if host.Spec.ConsumerRef == nil || host.Spec.Image == nil {
		return
	}
	consumer := host.Namespace + "/" + host.Spec.ConsumerRef.Name + " on " + host.Name
	former, known := i.images[consumer]
	i.images[consumer] = host.Spec.Image.URL
	if known {
		i.expectf(former == host.Spec.Image.URL, "CORE-20", "the image of %s changed", consumer)
		return
	}
	i.expectf(
		ptr.Deref(host.Spec.Image.DiskFormat, "") == "live-iso" && !isPlaceholder(host.Spec.Image.URL), "CORE-20",
		"%s got the template's placeholder", consumer,
	)
}

// checkMetal3Machine: an infrastructure machine that is provided could be so only with the published kubeconfig.
func (i *invariants) checkMetal3Machine(machine *unstructured.Unstructured) {
	ready, _, _ := unstructured.NestedBool(machine.Object, "status", "ready")
	if !metal3.IsMachine(machine) || !ready || !machine.GetDeletionTimestamp().IsZero() {
		return
	}
	cluster := &clusterv1.Cluster{}
	cluster.Name = machine.GetLabels()[clusterv1.ClusterNameLabel]
	if !i.exists(cluster, machine.GetNamespace(), cluster.Name) || !cluster.DeletionTimestamp.IsZero() {
		return
	}
	i.expectf(i.exists(&corev1.Secret{}, machine.GetNamespace(), secret.Name(cluster.Name, secret.Kubeconfig)), "CORE-22",
		"Metal3Machine %s/%s is ready before there is a kubeconfig", machine.GetNamespace(), machine.GetName())
}
