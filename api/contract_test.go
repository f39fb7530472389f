// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestKinds checks that every kind has its list and its template (CONTRACT BOOT-2, BOOT-3, CP-1).
func TestKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
	for _, group := range []struct {
		version schema.GroupVersion
		kind    string
	}{{bootstrapv1.GroupVersion, configKind}, {controlplanev1.GroupVersion, controlPlaneKind}} {
		for _, kind := range []string{group.kind, group.kind + "Template"} {
			object, err := scheme.New(group.version.WithKind(kind))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(object).To(BeAssignableToTypeOf(object.(client.Object)))
			list, err := scheme.New(group.version.WithKind(kind + "List"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsListType(list)).To(BeTrue())
			items, err := meta.GetItemsPtr(list)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reflect.TypeOf(items).Elem().Elem()).To(Equal(reflect.TypeOf(object).Elem()))
		}
	}
}

// TestCRDs checks what Cluster API and kubectl need of every CRD (CONTRACT BOOT-1, BOOT-4, BOOT-12, CP-2, CP-20).
func TestCRDs(t *testing.T) {
	shortNames := map[string]string{configKind: "oac", configTemplate: "oact", controlPlaneKind: "oacp", controlPlaneTemplate: "oacpt"}
	for kind, crd := range readCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			version := crd.Spec.Versions[0]
			g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped))
			g.Expect(crd.Name).To(Equal(contract.CalculateCRDName(crd.Spec.Group, kind)))
			g.Expect(crd.Spec.Names.ListKind).To(Equal(kind + "List"))
			g.Expect(crd.Spec.Names.Categories).To(ConsistOf("cluster-api"))
			g.Expect(crd.Spec.Names.ShortNames).To(ConsistOf(shortNames[kind]))
			g.Expect(version.Served && version.Storage).To(BeTrue())
			g.Expect(version.AdditionalPrinterColumns).NotTo(BeEmpty())
			if strings.HasSuffix(kind, "Template") {
				g.Expect(schemaOf(t, crd).Properties).NotTo(HaveKey("status"))
				g.Expect(at(schemaOf(t, crd), "spec.template.metadata").Properties).To(And(HaveKey("labels"), HaveKey("annotations"), HaveLen(2)))
				return
			}
			g.Expect(version.Subresources.Status).NotTo(BeNil())
		})
	}
}

// TestStatusShapes checks the fields of both statuses that core reads (CONTRACT BOOT-9, BOOT-10, CP-5, CP-7, CP-10, CP-16).
func TestStatusShapes(t *testing.T) {
	g := NewWithT(t)
	crds := readCRDs(t)
	config, controlPlane := schemaOf(t, crds[configKind]), schemaOf(t, crds[controlPlaneKind])

	name := at(config, "status.dataSecretName")
	g.Expect(name.Type).To(Equal("string"))
	g.Expect(name.MinLength).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(name.MaxLength).To(HaveValue(BeEquivalentTo(253)))
	g.Expect(at(config, "status.initialization").MinProperties).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(at(config, "status.initialization.dataSecretCreated").Type).To(Equal("boolean"))

	g.Expect(at(controlPlane, "status.initialization").MinProperties).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(at(controlPlane, "status.initialization.controlPlaneInitialized").Type).To(Equal("boolean"))
	for _, counter := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
		g.Expect(at(controlPlane, "status."+counter).Format).To(Equal("int32"), counter)
	}
	g.Expect(at(controlPlane, "status.selector").Type).To(Equal("string"))
	versions := at(controlPlane, "status.versions")
	g.Expect(versions.XListMapKeys).To(ConsistOf("version"))
	g.Expect(versions.MinItems).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(versions.MaxItems).To(HaveValue(BeEquivalentTo(100)))
	g.Expect(at(controlPlane, "status.externalManagedControlPlane")).To(BeNil())

	for _, schema := range []*apiextensionsv1.JSONSchemaProps{config, controlPlane} {
		conditions := at(schema, "status.conditions")
		g.Expect(conditions.XListMapKeys).To(ConsistOf("type"))
		g.Expect(conditions.MaxItems).To(HaveValue(BeEquivalentTo(32)))
		g.Expect(at(schema, "status.observedGeneration").Format).To(Equal("int64"))
	}
}

// TestControlPlaneSpecShape checks the fields of the control plane that core reads (CONTRACT CP-6, CP-7, CP-8, CP-9, CP-11, CP-12).
func TestControlPlaneSpecShape(t *testing.T) {
	g := NewWithT(t)
	crd := readCRDs(t)[controlPlaneKind]
	schema := schemaOf(t, crd)
	g.Expect(at(schema, "spec.replicas").Format).To(Equal("int32"))
	g.Expect(crd.Spec.Versions[0].Subresources.Scale).To(HaveValue(Equal(apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: ptr.To(".status.selector"),
	})))
	version := at(schema, "spec.version")
	g.Expect(version.MinLength).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(version.MaxLength).To(HaveValue(BeEquivalentTo(256)))
	g.Expect(at(schema, "spec.machineTemplate.metadata").Properties).To(And(HaveKey("labels"), HaveKey("annotations"), HaveLen(2)))
	g.Expect(at(schema, "spec.machineTemplate.spec.infrastructureRef").Required).To(ConsistOf("apiGroup", "kind", "name"))
	deletion := at(schema, "spec.machineTemplate.spec.deletion")
	g.Expect(deletion.MinProperties).To(HaveValue(BeEquivalentTo(1)))
	for _, timeout := range []string{"nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds"} {
		property := deletion.Properties[timeout]
		g.Expect(property.Format).To(Equal("int32"), timeout)
		g.Expect(property.Minimum).To(HaveValue(BeZero()), timeout)
	}
	// The infrastructure provider gives the endpoint.
	g.Expect(at(schema, "spec.controlPlaneEndpoint")).To(BeNil())
}

// TestTemplateMatchesControlPlane checks that a template's spec is a part of the control plane's (CONTRACT CP-18).
func TestTemplateMatchesControlPlane(t *testing.T) {
	crds := readCRDs(t)
	spec := at(schemaOf(t, crds[controlPlaneKind]), "spec")
	template := at(schemaOf(t, crds[controlPlaneTemplate]), "spec.template.spec")
	walk("", template, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		if path == "" {
			return
		}
		same := at(spec, path)
		if same == nil || same.Type != schema.Type || same.Format != schema.Format {
			t.Errorf("spec.template.spec.%s is not spec.%s of a control plane", path, path)
		}
	})
	for _, owned := range []string{"replicas", "version", "machineTemplate.spec.infrastructureRef"} {
		if at(template, owned) != nil {
			t.Errorf("spec.template.spec.%s belongs to the Cluster's topology", owned)
		}
	}
}

// TestZeroStatus checks that a status without content is sent as nothing at all (CONTRACT BOOT-10).
func TestZeroStatus(t *testing.T) {
	for _, object := range []any{bootstrapv1.OpenshiftAssistedConfigStatus{}, controlplanev1.OpenshiftAssistedControlPlaneStatus{}} {
		data, err := json.Marshal(object)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(string(data)).To(Equal("{}"))
	}
}

// TestReferenceType checks that the infrastructure reference has no version, so that it survives contract upgrades (CONTRACT CP-11).
func TestReferenceType(t *testing.T) {
	NewWithT(t).Expect(controlplanev1.MachineTemplateSpec{}.InfrastructureRef).To(BeAssignableToTypeOf(clusterv1.ContractVersionedObjectReference{}))
}
