// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// mirrorsKey is the file in a ConfigMap of mirrors, as assisted-service has it; the certificates of the mirrors are where those of a trust
// bundle are.
const mirrorsKey = "registries.conf"

// +kubebuilder:rbac:groups=config.openshift.io,resources=imagedigestmirrorsets;imagetagmirrorsets,verbs=list

// resolve asks registries with what the cluster and the management cluster say of them now.
func (r *Resolver) resolve(ctx context.Context, namespace string, request Request) (Release, error) {
	access, err := r.access(ctx, namespace, request)
	if err != nil {
		return Release{}, err
	}
	return r.Registry.Fetch(ctx, request.Image, access)
}

func (r *Resolver) access(ctx context.Context, namespace string, request Request) (Access, error) {
	secret := &corev1.Secret{}
	if err := r.read(ctx, namespace, request.PullSecret, secret, ErrPullSecret); err != nil {
		return Access{}, err
	}
	access := Access{PullSecret: secret.Data[corev1.DockerConfigJsonKey], TrustBundle: request.TrustBundle}
	var err error
	if request.TrustBundleRef != "" {
		access.TrustBundle, err = r.trustBundle(ctx, namespace, request.TrustBundleRef)
	}
	if err == nil && request.MirrorRegistryRef != "" {
		err = r.clusterMirrors(ctx, namespace, request.MirrorRegistryRef, &access)
	}
	if err == nil {
		access.Management, err = r.managementMirrors(ctx)
	}
	return access, err
}

// read gets an object of the cluster; reason is the error when it is not there.
func (r *Resolver) read(ctx context.Context, namespace, name string, object client.Object, reason error) error {
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s %s does not exist", reason, kindOf(object), name)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrManagementCluster, err)
	}
	return nil
}

func kindOf(object client.Object) string {
	if _, ok := object.(*corev1.Secret); ok {
		return "Secret"
	}
	return "ConfigMap"
}

// trustBundle are the certificates in a ConfigMap.
func (r *Resolver) trustBundle(ctx context.Context, namespace, name string) (string, error) {
	bundle := &corev1.ConfigMap{}
	if err := r.read(ctx, namespace, name, bundle, ErrTrustBundle); err != nil {
		return "", err
	}
	found := bundle.Data[bootstrapv1.TrustBundleKey]
	if found == "" {
		return "", fmt.Errorf("%w: ConfigMap %s has no key %s", ErrTrustBundle, name, bootstrapv1.TrustBundleKey)
	}
	return found, nil
}

// clusterMirrors adds the mirrors in a ConfigMap, and the certificates that they are trusted by.
func (r *Resolver) clusterMirrors(ctx context.Context, namespace, name string, access *Access) error {
	mirrors := &corev1.ConfigMap{}
	if err := r.read(ctx, namespace, name, mirrors, ErrMirrors); err != nil {
		return err
	}
	file, ok := mirrors.Data[mirrorsKey]
	if !ok {
		return fmt.Errorf("%w: ConfigMap %s has no key %s", ErrMirrors, name, mirrorsKey)
	}
	var err error
	if access.Cluster, err = ParseMirrors([]byte(file), ErrMirrors); err != nil {
		return fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	access.MirrorsBundle = mirrors.Data[bootstrapv1.TrustBundleKey]
	return nil
}

// managementMirrors are those of the management cluster, when it is OpenShift and has any.
func (r *Resolver) managementMirrors(ctx context.Context) (Mirrors, error) {
	digests, tags := &configv1.ImageDigestMirrorSetList{}, &configv1.ImageTagMirrorSetList{}
	for _, list := range []client.ObjectList{digests, tags} {
		// Another kind of management cluster does not know these kinds, or not any more.
		if err := r.Reader.List(ctx, list); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return Mirrors{}, fmt.Errorf("%w: %w", ErrManagementCluster, err)
		}
	}
	slices.SortFunc(digests.Items, func(a, b configv1.ImageDigestMirrorSet) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(tags.Items, func(a, b configv1.ImageTagMirrorSet) int { return strings.Compare(a.Name, b.Name) })
	return MirrorsOf(digests.Items, tags.Items), nil
}
