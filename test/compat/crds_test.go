// SPDX-License-Identifier: Apache-2.0

// Package compat checks every field of hive, assisted-service and Metal3 that the managers write or read against the
// CRDs of a release of those projects: make test-compat CRDS=<folder with *.yaml>. Without a folder the CRDs are those of
// the versions that the go.mod files pin.
package compat

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/crdschema"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

var crdFolder = flag.String("crds", "", "folder with the CRDs to check, as *.yaml; empty is those of the pinned versions")

// versions are the served versions of the CRDs: CRD name → version → schema.
type versions map[string]map[string]*apiextensionsv1.JSONSchemaProps

func (v versions) add(crd *apiextensionsv1.CustomResourceDefinition) {
	v[crd.Name] = map[string]*apiextensionsv1.JSONSchemaProps{}
	for i := range crd.Spec.Versions {
		if version := &crd.Spec.Versions[i]; version.Served {
			v[crd.Name][version.Name] = version.Schema.OpenAPIV3Schema
		}
	}
}

func load(t *testing.T) versions {
	t.Helper()
	if *crdFolder != "" {
		return fromFolder(t, *crdFolder)
	}
	return fromModules(t)
}

func fromFolder(t *testing.T, folder string) versions {
	t.Helper()
	g := NewWithT(t)
	crds, err := crdschema.ReadFolder(folder)
	g.Expect(err).NotTo(HaveOccurred())
	found := versions{}
	for _, crd := range crds {
		found.add(crd)
	}
	return found
}

// fromModules makes the CRDs from the pinned modules and installs them, so that an API server has taken them too.
func fromModules(t *testing.T) versions {
	t.Helper()
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(cp.Stop()).To(Succeed()) }()
	groups := []localcontrolplane.CRDGroup{
		localcontrolplane.CRDsMetal3, localcontrolplane.CRDsBareMetalHost, localcontrolplane.CRDsHive, localcontrolplane.CRDsAssisted,
	}
	g.Expect(cp.InstallCRDs(t.Context(), groups...)).To(Succeed())
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	cl, err := client.New(cp.Admin(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(cl.List(t.Context(), list)).To(Succeed())
	found := versions{}
	for i := range list.Items {
		found.add(&list.Items[i])
	}
	return found
}
