// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/contract"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// kindVersion is what Kubernetes takes for the version of an API.
var kindVersion = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

func TestContractKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
	kinds := []schema.GroupVersionKind{
		bootstrapv1.GroupVersion.WithKind(configKind), bootstrapv1.GroupVersion.WithKind(configTemplate),
		controlplanev1.GroupVersion.WithKind(controlPlaneKind), controlplanev1.GroupVersion.WithKind(controlPlaneTemplate),
	}
	t.Run("BOOT-2 BOOT-3 CP-1 every kind is an object with a list of its own", func(t *testing.T) {
		for _, kind := range kinds {
			g := NewWithT(t)
			object, err := scheme.New(kind)
			g.Expect(err).NotTo(HaveOccurred())
			_, isObject := object.(client.Object)
			g.Expect(isObject).To(BeTrue(), kind.Kind)
			list, err := scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
			g.Expect(err).NotTo(HaveOccurred())
			_, isList := list.(client.ObjectList)
			g.Expect(isList && meta.IsListType(list)).To(BeTrue(), kind.Kind)
			items, err := meta.GetItemsPtr(list)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reflect.TypeOf(items).Elem().Elem()).To(Equal(reflect.TypeOf(object).Elem()))
		}
	})
	t.Run("BOOT-3 every kind that core clones has a template named after it", func(t *testing.T) {
		for _, version := range []schema.GroupVersion{bootstrapv1.GroupVersion, controlplanev1.GroupVersion} {
			kinds, templates := ownKinds(scheme, version)
			g := NewWithT(t)
			g.Expect(kinds).NotTo(BeEmpty())
			g.Expect(templates).To(ConsistOf(kinds), "of the types of %s", version)
		}
	})
}

// ownKinds returns the kinds of a group that are registered with the Go types: those that are no template and no list, and those that have
// one.
func ownKinds(scheme *runtime.Scheme, version schema.GroupVersion) (kinds, withTemplate []string) {
	for kind, goType := range scheme.KnownTypes(version) {
		base, isTemplate := strings.CutSuffix(kind, "Template")
		switch {
		case !strings.HasPrefix(goType.PkgPath(), "github.com/capi-openshift/"), strings.HasSuffix(kind, "List"):
			// Kubernetes' own types that every group has, and lists.
		case isTemplate:
			withTemplate = append(withTemplate, base)
		default:
			kinds = append(kinds, kind)
		}
	}
	return kinds, withTemplate
}

func TestContractCRDs(t *testing.T) {
	crds := readCRDs(t)
	// each runs a check on every CRD.
	each := func(check func(g *WithT, kind string, crd *apiextensionsv1.CustomResourceDefinition)) func(t *testing.T) {
		return func(t *testing.T) {
			for kind, crd := range crds {
				t.Run(kind, func(t *testing.T) { check(NewWithT(t), kind, crd) })
			}
		}
	}
	t.Run("BOOT-1 CP-1 every kind is namespaced", each(func(g *WithT, _ string, crd *apiextensionsv1.CustomResourceDefinition) {
		g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped))
	}))
	t.Run("BOOT-3 CP-1 lists are named after their kinds", each(func(g *WithT, kind string, crd *apiextensionsv1.CustomResourceDefinition) {
		g.Expect(crd.Spec.Names.ListKind).To(Equal(kind + "List"))
	}))
	t.Run(
		"BOOT-4 CP-2 CTL-12 CRDs have the name that core computes, and no exception from clusterctl's check",
		each(func(g *WithT, kind string, crd *apiextensionsv1.CustomResourceDefinition) {
			g.Expect(crd.Name).To(Equal(contract.CalculateCRDName(crd.Spec.Group, kind)))
			g.Expect(crd.Annotations).NotTo(HaveKey(clusterctlv1.SkipCRDNamePreflightCheckAnnotation))
		}),
	)
	t.Run("BOOT-8 CRDs serve the version of the Go types alone", each(func(g *WithT, _ string, crd *apiextensionsv1.CustomResourceDefinition) {
		versions := map[string]string{
			bootstrapv1.GroupVersion.Group: bootstrapv1.GroupVersion.Version, controlplanev1.GroupVersion.Group: controlplanev1.GroupVersion.Version,
		}
		g.Expect(crd.Spec.Versions).To(ConsistOf(HaveField("Name", versions[crd.Spec.Group])))
		g.Expect(versions[crd.Spec.Group]).To(MatchRegexp(kindVersion.String()))
	}))
	t.Run(
		"BOOT-12 CP-20 every kind has a category, a short name and columns",
		each(func(g *WithT, kind string, crd *apiextensionsv1.CustomResourceDefinition) {
			shortNames := map[string]string{configKind: "oac", configTemplate: "oact", controlPlaneKind: "oacp", controlPlaneTemplate: "oacpt"}
			g.Expect(crd.Spec.Names.Categories).To(ConsistOf("cluster-api"))
			g.Expect(crd.Spec.Names.ShortNames).To(ConsistOf(shortNames[kind]))
			g.Expect(crd.Spec.Versions[0].Served && crd.Spec.Versions[0].Storage).To(BeTrue())
			g.Expect(crd.Spec.Versions[0].AdditionalPrinterColumns).NotTo(BeEmpty())
		}),
	)
	t.Run("BOOT-12 templates alone have no status", each(func(g *WithT, kind string, crd *apiextensionsv1.CustomResourceDefinition) {
		if strings.HasSuffix(kind, "Template") {
			g.Expect(schemaOf(t, crd).Properties).NotTo(HaveKey("status"))
			return
		}
		g.Expect(crd.Spec.Versions[0].Subresources.Status).NotTo(BeNil())
	}))
	t.Run(
		"BOOT-11 CP-18 templates have labels and annotations for what is made from them",
		each(func(g *WithT, kind string, crd *apiextensionsv1.CustomResourceDefinition) {
			if strings.HasSuffix(kind, "Template") {
				g.Expect(at(schemaOf(t, crd), "spec.template.metadata")).To(beObjectMeta())
				g.Expect(at(schemaOf(t, crd), "spec.template.spec")).NotTo(BeNil())
			}
		}),
	)
	t.Run("BOOT-53 CP-65 no kind has fields for failures", each(func(g *WithT, _ string, crd *apiextensionsv1.CustomResourceDefinition) {
		walk("", schemaOf(t, crd), func(path string, _ *apiextensionsv1.JSONSchemaProps) {
			g.Expect(path).NotTo(Or(HaveSuffix("failureReason"), HaveSuffix("failureMessage")))
		})
	}))
	t.Run("CP-20 the control plane's columns are those that users of Cluster API know", func(t *testing.T) {
		var columns []string
		for _, column := range crds[controlPlaneKind].Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, column.Name)
		}
		NewWithT(t).Expect(columns).To(ContainElements(
			"Cluster", "Available", "Desired", "Current", "Ready", "Up-to-date", "Paused", "Initialized", "Age", "Version"))
	})
}

// beObjectMeta matches the schema of Cluster API's ObjectMeta: labels and annotations, nothing else.
func beObjectMeta() types.GomegaMatcher {
	return HaveField("Properties", And(HaveKey("labels"), HaveKey("annotations"), HaveLen(2)))
}

// checkConditions checks the schema of conditions, and of the generation that the status belongs to.
func checkConditions(g *WithT, object *apiextensionsv1.JSONSchemaProps) {
	conditions := at(object, "status.conditions")
	g.Expect(conditions.XListMapKeys).To(ConsistOf("type"))
	g.Expect(conditions.MaxItems).To(HaveValue(BeEquivalentTo(32)))
	g.Expect(at(object, "status.observedGeneration").Format).To(Equal("int64"))
}

func TestContractConfigStatus(t *testing.T) {
	config := schemaOf(t, readCRDs(t)[configKind])
	t.Run("BOOT-9 the Secret's name is a bounded string", func(t *testing.T) {
		g := NewWithT(t)
		name := at(config, "status.dataSecretName")
		g.Expect(name.Type).To(Equal("string"))
		g.Expect(name.MinLength).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(name.MaxLength).To(HaveValue(BeEquivalentTo(253)))
		g.Expect(at(config, "status").Required).NotTo(ContainElement("dataSecretName"))
	})
	t.Run("BOOT-10 the flag is in an object that is never empty", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(at(config, "status.initialization").MinProperties).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(at(config, "status.initialization.dataSecretCreated").Type).To(Equal("boolean"))
	})
	t.Run("BOOT-10 an empty status is sent as nothing at all", func(t *testing.T) {
		data, err := json.Marshal(bootstrapv1.OpenshiftAssistedConfigStatus{})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(string(data)).To(Equal("{}"))
	})
	t.Run("BOOT-50 BOOT-55 conditions are a bounded map, with the generation they belong to", func(t *testing.T) {
		checkConditions(NewWithT(t), config)
	})
}

func TestContractControlPlaneStatus(t *testing.T) {
	controlPlane := schemaOf(t, readCRDs(t)[controlPlaneKind])
	t.Run("CP-5 the flag is in an object that is never empty", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(at(controlPlane, "status.initialization").MinProperties).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(at(controlPlane, "status.initialization.controlPlaneInitialized").Type).To(Equal("boolean"))
	})
	t.Run("CP-7 counters and selector have core's types", func(t *testing.T) {
		g := NewWithT(t)
		for _, counter := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
			g.Expect(at(controlPlane, "status."+counter).Format).To(Equal("int32"), counter)
		}
		g.Expect(at(controlPlane, "status.selector").Type).To(Equal("string"))
	})
	t.Run("CP-10 versions are a bounded map", func(t *testing.T) {
		g := NewWithT(t)
		versions := at(controlPlane, "status.versions")
		g.Expect(versions.XListMapKeys).To(ConsistOf("version"))
		g.Expect(versions.MinItems).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(versions.MaxItems).To(HaveValue(BeEquivalentTo(100)))
	})
	t.Run("CP-16 the control plane is not managed elsewhere", func(t *testing.T) {
		NewWithT(t).Expect(at(controlPlane, "status.externalManagedControlPlane")).To(BeNil())
	})
	t.Run("CP-17 conditions are a bounded map, with the generation they belong to", func(t *testing.T) {
		checkConditions(NewWithT(t), controlPlane)
	})
	t.Run("CP-5 an empty status is sent as nothing at all", func(t *testing.T) {
		data, err := json.Marshal(controlplanev1.OpenshiftAssistedControlPlaneStatus{})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(string(data)).To(Equal("{}"))
	})
}

func TestContractControlPlaneSpec(t *testing.T) {
	crd := readCRDs(t)[controlPlaneKind]
	controlPlane := schemaOf(t, crd)
	t.Run("CP-6 the infrastructure gives the endpoint", func(t *testing.T) {
		NewWithT(t).Expect(at(controlPlane, "spec.controlPlaneEndpoint")).To(BeNil())
	})
	t.Run("CP-7 CP-8 replicas can be scaled", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(at(controlPlane, "spec.replicas").Format).To(Equal("int32"))
		g.Expect(crd.Spec.Versions[0].Subresources.Scale).To(HaveValue(Equal(apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: ptr.To(".status.selector"),
		})))
	})
	t.Run("CP-9 the version is a bounded string", func(t *testing.T) {
		g := NewWithT(t)
		version := at(controlPlane, "spec.version")
		g.Expect(version.MinLength).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(version.MaxLength).To(HaveValue(BeEquivalentTo(256)))
	})
	t.Run("CP-11 the machine template has metadata and a reference without a version", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(at(controlPlane, "spec.machineTemplate.metadata")).To(beObjectMeta())
		g.Expect(at(controlPlane, "spec.machineTemplate.spec.infrastructureRef").Required).To(ConsistOf("apiGroup", "kind", "name"))
		g.Expect(controlplanev1.MachineTemplateSpec{}.InfrastructureRef).To(BeAssignableToTypeOf(clusterv1.ContractVersionedObjectReference{}))
	})
	t.Run("CP-13 readiness gates are a bounded map", func(t *testing.T) {
		g := NewWithT(t)
		checkMapList(g, at(controlPlane, "spec.machineTemplate.spec.readinessGates"), 32, "conditionType")
		g.Expect(controlplanev1.MachineTemplateSpec{}.ReadinessGates).To(BeAssignableToTypeOf([]clusterv1.MachineReadinessGate{}))
	})
	t.Run("CP-14 taints are a bounded map", func(t *testing.T) {
		g := NewWithT(t)
		checkMapList(g, at(controlPlane, "spec.machineTemplate.spec.taints"), 64, "key", "effect")
		g.Expect(controlplanev1.MachineTemplateSpec{}.Taints).To(BeAssignableToTypeOf([]clusterv1.MachineTaint{}))
	})
	t.Run("CP-12 deletion time-outs are not negative", func(t *testing.T) {
		g := NewWithT(t)
		deletion := at(controlPlane, "spec.machineTemplate.spec.deletion")
		g.Expect(deletion.MinProperties).To(HaveValue(BeEquivalentTo(1)))
		for _, timeout := range []string{"nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds"} {
			property := deletion.Properties[timeout]
			g.Expect(property.Format).To(Equal("int32"), timeout)
			g.Expect(property.Minimum).To(HaveValue(BeZero()), timeout)
		}
	})
}

// checkMapList checks a list that is a map by keys and has 1 to most items.
func checkMapList(g *WithT, list *apiextensionsv1.JSONSchemaProps, most int, keys ...string) {
	g.Expect(list.XListType).To(HaveValue(Equal("map")))
	g.Expect(list.XListMapKeys).To(Equal(keys))
	g.Expect(list.MinItems).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(list.MaxItems).To(HaveValue(BeEquivalentTo(most)))
}

func TestContractTemplates(t *testing.T) {
	crds := readCRDs(t)
	spec := at(schemaOf(t, crds[controlPlaneKind]), "spec")
	template := at(schemaOf(t, crds[controlPlaneTemplate]), "spec.template.spec")
	t.Run("CP-18 whatever a template says fits a control plane", func(t *testing.T) {
		walk("", template, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if path == "" {
				return
			}
			same := at(spec, path)
			if same == nil || same.Type != schema.Type || same.Format != schema.Format {
				t.Errorf("spec.template.spec.%s is not spec.%s of a control plane", path, path)
			}
		})
	})
	t.Run("CP-18 a template leaves out what a topology owns", func(t *testing.T) {
		for _, owned := range []string{"replicas", "version", "machineTemplate.spec.infrastructureRef", "machineTemplate.spec.readinessGates"} {
			if at(template, owned) != nil {
				t.Errorf("spec.template.spec.%s belongs to the Cluster's topology", owned)
			}
		}
	})
}
