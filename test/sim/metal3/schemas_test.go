// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capi-openshift/agent-providers/test/crdschema"
)

// crdSchema does what an API server does with an object before it asks the webhooks.
type crdSchema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

// capm3Schemas returns the schemas of CAPM3's CRDs.
func capm3Schemas(t *testing.T) map[schema.GroupVersionKind]*crdSchema {
	t.Helper()
	g := NewWithT(t)
	crds, err := crdschema.ReadFolder(filepath.Join("..", "..", "localcontrolplane", "crds", "metal3"))
	g.Expect(err).NotTo(HaveOccurred())
	schemas := map[schema.GroupVersionKind]*crdSchema{}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			properties := &apiextensions.JSONSchemaProps{}
			g.Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
				version.Schema.OpenAPIV3Schema, properties, nil,
			)).To(Succeed())
			made := &crdSchema{}
			made.structural, err = structuralschema.NewStructural(properties)
			g.Expect(err).NotTo(HaveOccurred())
			made.validator, _, err = validation.NewSchemaValidator(properties)
			g.Expect(err).NotTo(HaveOccurred())
			schemas[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = made
		}
	}
	return schemas
}

// complete drops what the schema does not know, and adds what it has by default.
func (s *crdSchema) complete(object *unstructured.Unstructured) {
	pruning.Prune(object.Object, s.structural, true)
	defaulting.Default(object.Object, s.structural)
}

// check returns the API server's refusal.
func (s *crdSchema) check(object *unstructured.Unstructured) error {
	errs := validation.ValidateCustomResource(nil, object.UnstructuredContent(), s.validator)
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(object.GroupVersionKind().GroupKind(), object.GetName(), errs)
}
