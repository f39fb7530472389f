// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/core/webhooks/conversion"
	"sigs.k8s.io/cluster-api/util/contract"
)

func setupWebhooks(mgr ctrl.Manager, clusterCache admission.ClusterCacheReader) error {
	conversion.SetAPIVersionGetter(func(ctx context.Context, kind schema.GroupKind) (string, error) {
		return latestContractVersion(ctx, mgr.GetClient(), kind)
	})
	webhooks := []interface {
		SetupWebhookWithManager(mgr ctrl.Manager) error
	}{
		&admission.ClusterClass{Client: mgr.GetClient()},
		&admission.Cluster{Client: mgr.GetClient(), ClusterCacheReader: clusterCache},
		&admission.Machine{},
		&admission.MachineSet{},
		&admission.MachineDeployment{},
		&admission.MachineDrainRule{},
		&admission.MachinePool{},
		&admission.ClusterResourceSet{},
		&admission.ClusterResourceSetBinding{},
		&admission.MachineHealthCheck{},
		&admission.ExtensionConfig{},
		&admission.IPAddress{Client: mgr.GetAPIReader()},
		&admission.IPAddressClaim{},
	}
	for _, webhook := range webhooks {
		if err := webhook.SetupWebhookWithManager(mgr); err != nil {
			return fmt.Errorf("cannot set up %T: %w", webhook, err)
		}
	}
	return nil
}

// latestContractVersion returns the apiVersion that Cluster API uses for a provider's kind: the latest one that the
// kind's CRD lists in the label of the v1beta2 contract, or else of the v1beta1 contract.
func latestContractVersion(ctx context.Context, reader client.Reader, kind schema.GroupKind) (string, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	name := contract.CalculateCRDName(kind.Group, kind.Kind)
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return "", fmt.Errorf("cannot read which versions of %s follow a Cluster API contract: %w", kind, err)
	}
	for _, contractVersion := range []string{"v1beta2", "v1beta1"} {
		label := clusterv1.GroupVersion.Group + "/" + contractVersion
		if versions := crd.Labels[label]; versions != "" {
			latest := slices.MaxFunc(strings.Split(versions, "_"), version.CompareKubeAwareVersionStrings)
			return schema.GroupVersion{Group: kind.Group, Version: latest}.String(), nil
		}
	}
	return "", fmt.Errorf("CRD %s has no label %s/v1beta2 or /v1beta1: label it with its versions", name, clusterv1.GroupVersion.Group)
}
