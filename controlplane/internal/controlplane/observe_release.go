// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/release"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// Releases tells what release images are. It answers at once, and wakes the reconciler when it knows more.
type Releases interface {
	Lookup(ctx context.Context, controlPlane types.NamespacedName, request release.Request) release.Answer
	Forget(controlPlane types.NamespacedName)
}

// observeRelease asks for the release image unless status tells of it, which it does for ever.
func (r *Reconciler) observeRelease(ctx context.Context, v *view.View) error {
	spec := v.ControlPlane.Spec
	v.Release = view.Release{Off: r.Releases == nil}
	if name := spec.Release.ImageSetRef.Name; name != "" {
		return r.observeImageSet(ctx, v, name)
	}
	v.Release.Image = view.ReleaseImage(spec)
	if r.Releases != nil && v.ControlPlane.Status.Release.Image != v.Release.Image {
		v.Release.Answer = r.Releases.Lookup(ctx, client.ObjectKeyFromObject(v.ControlPlane), release.Request{
			Image: v.Release.Image, PullSecret: spec.Install.PullSecretRef.Name,
			TrustBundle:    spec.OpenshiftAssistedConfigSpec.AdditionalTrustBundle,
			TrustBundleRef: spec.OpenshiftAssistedConfigSpec.AdditionalTrustBundleRef.Name, MirrorRegistryRef: spec.Install.MirrorRegistryRef.Name,
		})
	}
	return nil
}

// observeImageSet reads which image the ClusterImageSet of an installed cluster names: the cluster may be upgraded to it.
func (r *Reconciler) observeImageSet(ctx context.Context, v *view.View, name string) error {
	if !v.Life.Installed() || !r.served(assisted.CRDClusterImageSets) {
		return nil
	}
	imageSet, err := kube.GetOrNil[hivev1.ClusterImageSet](ctx, r.Client, types.NamespacedName{Name: name})
	if err == nil && imageSet != nil {
		v.Release.SetImage = imageSet.Spec.ReleaseImage
	}
	return err
}
