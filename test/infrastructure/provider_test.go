// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
)

const finalizer = "examplemachine.infrastructure.cluster.x-k8s.io"

// provider is an infrastructure provider with the contract's fields only. The simulated machines of the sandbox are BareMetalHosts, so
// behind each ExampleMachine is one of those, of which nobody else knows.
type provider struct{ client.Client }

func newExample(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1")
	o.SetKind(kind)
	return o
}

// startProvider runs the provider until the context ends.
func startProvider(ctx context.Context, mgr ctrl.Manager) error {
	p := &provider{Client: mgr.GetClient()}
	err := ctrl.NewControllerManagedBy(mgr).Named("example").For(newExample("ExampleMachine")).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
		})).
		Watches(&bmov1alpha1.BareMetalHost{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			ref := o.(*bmov1alpha1.BareMetalHost).Spec.ConsumerRef
			if ref == nil {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
		})).
		Complete(p)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func providerOptions(scheme *runtime.Scheme) ctrl.Options {
	return ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
}

// Reconcile gives a machine a host with the Machine's user data and, when the host runs, its provider ID.
func (p *provider) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	example := newExample("ExampleMachine")
	if err := p.Get(ctx, req.NamespacedName, example); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	host, err := p.hostOf(ctx, example)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !example.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, p.free(ctx, example, host)
	}
	if controllerutil.AddFinalizer(example, finalizer) {
		return ctrl.Result{}, p.Update(ctx, example)
	}
	machine, err := util.GetOwnerMachine(
		ctx, p.Client, metav1.ObjectMeta{Namespace: example.GetNamespace(), OwnerReferences: example.GetOwnerReferences()},
	)
	if err != nil || machine == nil || machine.Spec.Bootstrap.DataSecretName == nil || host == nil {
		return ctrl.Result{}, err
	}
	if host.Spec.Image == nil {
		host.Spec.ConsumerRef = &corev1.ObjectReference{
			APIVersion: example.GetAPIVersion(), Kind: example.GetKind(), Namespace: req.Namespace, Name: req.Name,
		}
		host.Spec.Image = &bmov1alpha1.Image{URL: "http://images.invalid/coreos.qcow2", Checksum: "none", DiskFormat: ptr.To("qcow2")}
		host.Spec.UserData = &corev1.SecretReference{Namespace: req.Namespace, Name: *machine.Spec.Bootstrap.DataSecretName}
		host.Spec.Online = true
		return ctrl.Result{}, p.Update(ctx, host)
	}
	if id, _, _ := unstructured.NestedString(
		example.Object, "spec", "providerID",
	); host.Status.Provisioning.State != bmov1alpha1.StateProvisioned ||
		id != "" {
		return ctrl.Result{}, nil
	}
	_ = unstructured.SetNestedField(example.Object, "example:///"+host.Name, "spec", "providerID")
	if err := p.Update(ctx, example); err != nil {
		return ctrl.Result{}, err
	}
	_ = unstructured.SetNestedMap(example.Object, map[string]any{
		"initialization": map[string]any{"provisioned": true},
		"addresses":      []any{map[string]any{"type": "InternalIP", "address": "192.0.2.10"}},
	}, "status")
	return ctrl.Result{}, p.Status().Update(ctx, example)
}

// hostOf returns the host of a machine, or one that is free.
func (p *provider) hostOf(ctx context.Context, example client.Object) (*bmov1alpha1.BareMetalHost, error) {
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := p.List(ctx, hosts, client.InNamespace(example.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	var free *bmov1alpha1.BareMetalHost
	for i := range hosts.Items {
		host := &hosts.Items[i]
		if host.Spec.ConsumerRef != nil && host.Spec.ConsumerRef.Name == example.GetName() {
			return host, nil
		}
		if host.Spec.ConsumerRef == nil && free == nil {
			free = host
		}
	}
	return free, nil
}

// free takes the host away from a machine, and lets the machine go.
func (p *provider) free(ctx context.Context, example *unstructured.Unstructured, host *bmov1alpha1.BareMetalHost) error {
	if host != nil && host.Spec.ConsumerRef != nil {
		host.Spec.ConsumerRef, host.Spec.Image, host.Spec.UserData, host.Spec.Online = nil, nil, nil, false
		if err := p.Update(ctx, host); err != nil {
			return err
		}
	}
	if !controllerutil.RemoveFinalizer(example, finalizer) {
		return nil
	}
	return p.Update(ctx, example)
}
