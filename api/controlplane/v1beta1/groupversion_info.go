// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains the OpenshiftAssistedControlPlane API: the control plane of an OpenShift cluster on bare metal.
// +kubebuilder:object:generate=true
// +groupName=controlplane.cluster.x-k8s.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package (DESIGN D1).
var GroupVersion = schema.GroupVersion{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&OpenshiftAssistedControlPlane{}, &OpenshiftAssistedControlPlaneList{},
		&OpenshiftAssistedControlPlaneTemplate{}, &OpenshiftAssistedControlPlaneTemplateList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
