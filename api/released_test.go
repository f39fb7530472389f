// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// releasedFolder has the CRDs of the last release. `make released-api` writes them when one is made.
const releasedFolder = "testdata/released"

// accepted are changes that rule 1 of docs/support.md forbids and that were made all the same, with the reason. It is emptied by the next
// release.
var accepted = map[string]string{
	"OpenshiftAssistedControlPlane v1beta1.spec: there is a new rule: " +
		"(has(self.install.platform) ? self.install.platform : self.replicas == 1 ? 'None' : 'BareMetal') == " +
		"(has(oldSelf.install.platform) ? oldSelf.install.platform : oldSelf.replicas == 1 ? 'None' : 'BareMetal')": "" +
		"it takes more than the one before: a written default",
	"OpenshiftAssistedControlPlane v1beta1.spec: there is a new rule: " +
		"(has(self.install.external) && has(self.install.external.platformName) ? self.install.external.platformName : 'Unknown') == " +
		"(has(oldSelf.install.external) && has(oldSelf.install.external.platformName) ? oldSelf.install.external.platformName : 'Unknown')" +
		" && (has(self.install.external) && has(self.install.external.cloudControllerManager) ? " +
		"self.install.external.cloudControllerManager : 'None') == (has(oldSelf.install.external) && " +
		"has(oldSelf.install.external.cloudControllerManager) ? oldSelf.install.external.cloudControllerManager : 'None')": "" +
		"it takes more than the one before: written defaults",
}

// TestSchemasStayCompatible compares the CRDs with those of the last release: what it has served has to stay valid.
func TestSchemasStayCompatible(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(releasedFolder + "/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty(), "run make released-api")
	crds := readCRDs(t)
	found := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		released := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.UnmarshalStrict(data, released)).To(Succeed(), file)
		for _, problem := range incompatibilities(released, crds[released.Spec.Names.Kind]) {
			found[problem] = true
			if accepted[problem] == "" {
				t.Errorf("%s\nan object of the last release may not be valid any more: see rule 1 of docs/support.md", problem)
			}
		}
	}
	for problem := range accepted {
		if !found[problem] {
			t.Errorf("accepted, but not so: %s", problem)
		}
	}
}

// incompatibilities returns what was valid by the former CRD and is not by the present one.
func incompatibilities(before, now *apiextensionsv1.CustomResourceDefinition) []string {
	kind := before.Spec.Names.Kind
	if now == nil {
		return []string{kind + ": the kind is gone"}
	}
	var problems []string
	if before.Name != now.Name || before.Spec.Scope != now.Spec.Scope {
		problems = append(problems, kind+": the name or the scope of the CRD is another one")
	}
	for _, short := range before.Spec.Names.ShortNames {
		if !slices.Contains(now.Spec.Names.ShortNames, short) {
			problems = append(problems, kind+": the short name "+short+" is gone")
		}
	}
	for i := range before.Spec.Versions {
		problems = append(problems, versionProblems(kind, &before.Spec.Versions[i], now)...)
	}
	return problems
}

func versionProblems(
	kind string, before *apiextensionsv1.CustomResourceDefinitionVersion, crd *apiextensionsv1.CustomResourceDefinition,
) []string {
	index := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == before.Name })
	name := kind + " " + before.Name
	if index < 0 || before.Served && !crd.Spec.Versions[index].Served {
		return []string{name + ": the version is not served any more"}
	}
	now := &crd.Spec.Versions[index]
	var problems []string
	if had := before.Subresources; had != nil {
		has := ptr.Deref(now.Subresources, apiextensionsv1.CustomResourceSubresources{})
		if had.Status != nil && has.Status == nil || had.Scale != nil && has.Scale == nil {
			problems = append(problems, name+": a subresource is gone")
		}
	}
	return append(problems, changeProblems(name, before.Schema.OpenAPIV3Schema, now.Schema.OpenAPIV3Schema)...)
}

// changeProblems compares a field and everything in it.
func changeProblems(path string, before, now *apiextensionsv1.JSONSchemaProps) []string {
	problems := shapeProblems(path, before, now)
	problems = append(problems, boundProblems(path, before, now)...)
	for name := range before.Properties {
		had := before.Properties[name]
		has, there := now.Properties[name]
		if !there {
			problems = append(problems, path+"."+name+": the field is gone")
			continue
		}
		problems = append(problems, changeProblems(path+"."+name, &had, &has)...)
	}
	if before.Items != nil && before.Items.Schema != nil && now.Items != nil && now.Items.Schema != nil {
		problems = append(problems, changeProblems(path+"[]", before.Items.Schema, now.Items.Schema)...)
	}
	return problems
}

// shapeProblems compares what a field is.
func shapeProblems(path string, before, now *apiextensionsv1.JSONSchemaProps) []string {
	var problems []string
	if before.Type != now.Type || before.Format != now.Format || before.XIntOrString != now.XIntOrString {
		problems = append(problems, path+": the type is another one")
	}
	if ptr.Deref(before.XListType, "") != ptr.Deref(now.XListType, "") || !slices.Equal(before.XListMapKeys, now.XListMapKeys) {
		problems = append(problems, path+": the kind of list is another one, which changes how it is merged")
	}
	if ptr.Deref(before.XPreserveUnknownFields, false) && !ptr.Deref(now.XPreserveUnknownFields, false) {
		problems = append(problems, path+": unknown fields are dropped now")
	}
	for _, required := range now.Required {
		if !slices.Contains(before.Required, required) {
			problems = append(problems, path+"."+required+": the field has become required")
		}
	}
	for _, value := range before.Enum {
		if !slices.ContainsFunc(now.Enum, func(v apiextensionsv1.JSON) bool { return string(v.Raw) == string(value.Raw) }) && len(now.Enum) > 0 {
			problems = append(problems, fmt.Sprintf("%s: the value %s is gone", path, value.Raw))
		}
	}
	if len(before.Enum) == 0 && len(now.Enum) > 0 {
		problems = append(problems, path+": the values are limited now")
	}
	return problems
}

// boundProblems compares which values a field takes.
func boundProblems(path string, before, now *apiextensionsv1.JSONSchemaProps) []string {
	var problems []string
	narrower := tighter(before.MaxLength, now.MaxLength, 1) || tighter(before.MinLength, now.MinLength, -1) ||
		tighter(before.MaxItems, now.MaxItems, 1) || tighter(before.MinItems, now.MinItems, -1) ||
		tighter(before.MaxProperties, now.MaxProperties, 1) || tighter(before.MinProperties, now.MinProperties, -1) ||
		tighter(before.Maximum, now.Maximum, 1) || tighter(before.Minimum, now.Minimum, -1)
	if narrower {
		problems = append(problems, path+": a bound is narrower")
	}
	if now.Pattern != "" && now.Pattern != before.Pattern {
		problems = append(problems, path+": the pattern is another one")
	}
	for _, rule := range now.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) {
			problems = append(problems, path+": there is a new rule: "+strings.Join(strings.Fields(rule.Rule), " "))
		}
	}
	return problems
}

// tighter reports whether an upper bound (sign 1) has become smaller, or a lower one (sign -1) larger; nil is no bound.
func tighter[N int64 | float64](before, now *N, sign N) bool {
	return now != nil && (before == nil && (sign > 0 || *now > 0) || before != nil && *now*sign < *before*sign)
}
