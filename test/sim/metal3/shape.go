// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	infrastructureGroup = "infrastructure.cluster.x-k8s.io"

	kindMachine         = "Metal3Machine"
	kindMachineTemplate = "Metal3MachineTemplate"
	kindCluster         = "Metal3Cluster"

	machineCRD = "metal3machines." + infrastructureGroup
)

// shape says where one API version of CAPM3 keeps its fields (M3-81).
type shape struct {
	// version is the API version, such as v1beta2.
	version string
	// conditions is the path of the conditions that follow the v1beta2 contract; nil when the version has no place for them.
	conditions []string
	// deprecatedConditions is the path of the conditions that follow the v1beta1 contract.
	deprecatedConditions []string
	// provisioned is the path of the flag by which an object says that it is ready.
	provisioned []string
	// diskFormat is the name of the image's format in spec.image.
	diskFormat string
	// cloudProviderDefault is what CAPM3's webhook makes of a Metal3Cluster that says nothing about a cloud provider.
	cloudProviderDefault bool
}

// installedShape returns the shape of the newest Metal3Machine version that the installed CRD serves.
func installedShape(ctx context.Context, cfg *rest.Config) (shape, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return shape{}, fmt.Errorf("add CustomResourceDefinition to a scheme: %w", err)
	}
	reader, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return shape{}, fmt.Errorf("create a client to read CustomResourceDefinition %s: %w", machineCRD, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := reader.Get(ctx, client.ObjectKey{Name: machineCRD}, crd); err != nil {
		return shape{}, fmt.Errorf("read CustomResourceDefinition %s, which must be installed first: %w", machineCRD, err)
	}
	served := map[string]*apiextensionsv1.CustomResourceDefinitionVersion{}
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Served {
			served[crd.Spec.Versions[i].Name] = &crd.Spec.Versions[i]
		}
	}
	switch {
	case served[versionV1Beta2] != nil:
		return shapeV1Beta2(), nil
	case served[versionV1Beta1] != nil:
		return shapeV1Beta1(hasV1Beta2Status(served[versionV1Beta1])), nil
	}
	return shape{}, fmt.Errorf("CustomResourceDefinition %s serves neither v1beta2 nor v1beta1: install a CAPM3 version that does", machineCRD)
}

func shapeV1Beta2() shape {
	return shape{
		version:              versionV1Beta2,
		conditions:           []string{"status", "conditions"},
		deprecatedConditions: []string{"status", "deprecated", versionV1Beta1, "conditions"},
		provisioned:          []string{"status", "initialization", "provisioned"},
		diskFormat:           formatV1Beta2,
	}
}

func shapeV1Beta1(withV1Beta2Status bool) shape {
	s := shape{
		version:              versionV1Beta1,
		deprecatedConditions: []string{"status", "conditions"},
		provisioned:          []string{"status", "ready"},
		diskFormat:           formatV1Beta1,
		cloudProviderDefault: true,
	}
	if withV1Beta2Status {
		s.conditions = []string{"status", versionV1Beta2, "conditions"}
	}
	return s
}

// hasV1Beta2Status tells whether status.v1beta2 exists: only later releases have it in their v1beta1, and the API server would
// prune what is written there.
func hasV1Beta2Status(version *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return false
	}
	_, ok := version.Schema.OpenAPIV3Schema.Properties["status"].Properties[versionV1Beta2]
	return ok
}

func (s shape) gvk(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: infrastructureGroup, Version: s.version, Kind: kind}
}

func (s shape) newObject(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.gvk(kind))
	return object
}

// cloudProviderEnabled tells whether Nodes get their provider IDs from a cloud provider (M3-34, M3-35). v1beta1 has a
// deprecated opposite beside the field.
func (s shape) cloudProviderEnabled(cluster *unstructured.Unstructured) bool {
	if enabled, found, err := unstructured.NestedBool(cluster.Object, "spec", "cloudProviderEnabled"); err == nil && found {
		return enabled
	}
	if disabled, found, err := unstructured.NestedBool(cluster.Object, "spec", "noCloudProvider"); err == nil && found {
		return !disabled
	}
	return s.cloudProviderDefault
}
