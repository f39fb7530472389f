// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// controlPlaneKind is the only kind of control planes that tells its release, and the only one that the manager's role names. It is read
// without its types, because the bootstrap provider works with every control plane provider. The manager does not start beside CRDs of
// other versions.
var controlPlaneKind = schema.GroupVersionKind{
	Group: "controlplane.cluster.x-k8s.io", Version: bootstrapv1.GroupVersion.Version, Kind: "OpenshiftAssistedControlPlane",
}

// observeRelease reads which release the cluster runs, and the OS images that assisted-service has. That is done once for a config, from
// the API server: nothing is watched, because what changes later concerns later configs only.
func (r *Reconciler) observeRelease(ctx context.Context, s *scope) error {
	ref := s.cluster.Spec.ControlPlaneRef
	if !choosesOSImage(s) || ref.APIGroup != controlPlaneKind.Group || ref.Kind != controlPlaneKind.Kind {
		return nil
	}
	controlPlane := &unstructured.Unstructured{}
	controlPlane.SetGroupVersionKind(controlPlaneKind)
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: ref.Name}
	if exists, err := r.readIfAllowed(ctx, key, controlPlane); err != nil || !exists {
		return err
	}
	s.runs, _, _ = unstructured.NestedString(controlPlane.Object, "status", "distributionVersion")
	if s.runs == "" {
		return nil
	}
	service := &assisted.AgentServiceConfig{}
	if exists, err := r.readIfAllowed(ctx, client.ObjectKey{Name: assisted.AgentServiceConfigName}, service); err != nil || !exists {
		return err
	}
	s.osImages = service.Spec.OSImages
	return nil
}

// readIfAllowed reads an object from the API server and reports whether it is there. One whose kind does not exist, or may not be read
// here, is not there: hosts can be discovered without it, and whoever takes a rule out of the manager's role wants just that.
func (r *Reconciler) readIfAllowed(ctx context.Context, key client.ObjectKey, o client.Object) (bool, error) {
	err := r.APIReader.Get(ctx, key, o)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		ctrl.LoggerFrom(ctx).V(2).Info("Choosing the OS image of a host without an object that cannot be read", "reason", err.Error())
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", o, klog.KRef(key.Namespace, key.Name), err)
	}
	return true, nil
}
