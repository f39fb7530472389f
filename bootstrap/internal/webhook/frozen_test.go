// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/crdschema"
	"github.com/capi-openshift/agent-providers/test/windows"
)

// TestWindows: every field can be changed as long as its description says, and is refused afterwards with what to do instead.
func TestWindows(t *testing.T) {
	schema, err := crdschema.ReadKind("../../../config/bootstrap/crd/bases", "OpenshiftAssistedConfig")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	recognised := map[string]string{bootstrapv1.AgentAnnotation: "agent"}
	bound := map[string]string{
		bootstrapv1.AgentAnnotation: "agent", bootstrapv1.InstallationDiskAnnotation: bootstrapv1.InstallationDiskDefault,
	}
	open := map[windows.Window][]map[string]string{
		windows.Never:           {},
		windows.UntilRecognised: {nil},
		windows.UntilBound:      {nil, recognised},
	}
	for path, change := range windows.Changes[bootstrapv1.OpenshiftAssistedConfigSpec]() {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			said := windows.At(schema, path)
			g.Expect(said).To(HaveLen(1), "one window")
			g.Expect(open).To(HaveKey(said[0]))
			for i, annotations := range []map[string]string{nil, recognised, bound} {
				before := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
				after := before.DeepCopy()
				change(&after.Spec)
				g.Expect(frozen(after, after)).To(BeEmpty())
				errs := frozen(before, after)
				if i < len(open[said[0]]) {
					g.Expect(errs).To(BeEmpty(), "%v", annotations)
					continue
				}
				g.Expect(errs).To(HaveLen(1), "%v", annotations)
				g.Expect(strings.HasPrefix(path+".", errs[0].Field+".")).To(BeTrue(), errs[0].Field)
				g.Expect(errs[0].Detail).To(ContainSubstring("replace the Machine"))
			}
		})
	}
}

// TestDefaultsCanBeWritten: to write down a default changes nothing.
func TestDefaultsCanBeWritten(t *testing.T) {
	g := NewWithT(t)
	before := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{bootstrapv1.AgentAnnotation: "agent"}},
	}
	after := before.DeepCopy()
	after.Spec.Boot.Mode = bootstrapv1.BootModeLiveISO
	after.Spec.CPUArchitecture = bootstrapv1.CPUArchitectureX86
	after.Spec.HostIdentity = bootstrapv1.HostIdentityBareMetalHost
	after.Spec.NodeRegistration.Name = bootstrapv1.NodeNameMachine
	g.Expect(frozen(before, after)).To(BeEmpty())
}

// TestListsCanBeReordered: another order of a list changes nothing where the order means nothing.
func TestListsCanBeReordered(t *testing.T) {
	type spec = bootstrapv1.OpenshiftAssistedConfigSpec
	for name, tc := range map[string]struct {
		reverse func(*spec)
		refused []string
	}{
		"proxy.noProxy":         {reverse: func(s *spec) { slices.Reverse(s.Proxy.NoProxy) }},
		"additionalNTPSources":  {reverse: func(s *spec) { slices.Reverse(s.AdditionalNTPSources) }},
		"ntpSources":            {reverse: func(s *spec) { slices.Reverse(s.NTPSources) }},
		"nmStateConfigSelector": {reverse: func(s *spec) { slices.Reverse(s.NMStateConfigSelector.MatchExpressions) }},
		"values of nmStateConfigSelector": {
			reverse: func(s *spec) { slices.Reverse(s.NMStateConfigSelector.MatchExpressions[0].Values) },
		},
		"nodeRegistration.labels":             {reverse: func(s *spec) { slices.Reverse(s.NodeRegistration.Labels) }},
		"installation.deletedKernelArguments": {reverse: func(s *spec) { slices.Reverse(s.Installation.DeletedKernelArguments) }},
		"installation.kernelArguments": {
			func(s *spec) { slices.Reverse(s.Installation.KernelArguments) }, []string{"spec.installation.kernelArguments"},
		},
		"discovery.kernelArguments": {
			func(s *spec) { slices.Reverse(s.Discovery.KernelArguments) }, []string{"spec.discovery.kernelArguments"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := &bootstrapv1.OpenshiftAssistedConfig{Spec: specWithLists()}
			before.Annotations = map[string]string{bootstrapv1.AgentAnnotation: "agent"}
			after := before.DeepCopy()
			tc.reverse(&after.Spec)
			g.Expect(after.Spec).NotTo(Equal(before.Spec))
			stored := after.DeepCopy()
			var refused []string
			for _, err := range frozen(before, after) {
				refused = append(refused, err.Field)
			}
			g.Expect(refused).To(Equal(tc.refused))
			g.Expect(after).To(Equal(stored), "to compare changes nothing")
		})
	}
}

// specWithLists has every list of a config with two items.
func specWithLists() bootstrapv1.OpenshiftAssistedConfigSpec {
	var spec bootstrapv1.OpenshiftAssistedConfigSpec
	two := func() []string { return []string{"b", "a"} }
	spec.Proxy.NoProxy, spec.AdditionalNTPSources, spec.NTPSources = two(), two(), two()
	spec.Discovery.KernelArguments, spec.Installation.KernelArguments, spec.Installation.DeletedKernelArguments = two(), two(), two()
	spec.NodeRegistration.Labels = []bootstrapv1.NodeLabel{{Key: "b", Value: new("1")}, {Key: "a", Value: new("2")}}
	spec.NMStateConfigSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "b", Operator: metav1.LabelSelectorOpIn, Values: two()}, {Key: "a", Operator: metav1.LabelSelectorOpExists},
	}}
	return spec
}

// TestDeletedConfigs: a config that is deleted while its Machine lives stays, and its host is worked on.
func TestDeletedConfigs(t *testing.T) {
	g := NewWithT(t)
	before := brokenConfig()
	before.DeletionTimestamp, before.Finalizers = ptr.To(metav1.Now()), []string{bootstrapv1.ConfigFinalizer}
	after := before.DeepCopy()
	after.Finalizers = nil
	_, err := configValidator{}.ValidateUpdate(t.Context(), before, after)
	g.Expect(err).NotTo(HaveOccurred(), "its finalizer has to go")
	after.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv
	_, err = configValidator{}.ValidateUpdate(t.Context(), before, after)
	g.Expect(err).To(MatchError(ContainSubstring("spec.hostIdentity")))
}

// brokenConfig is one that admission would refuse today.
func brokenConfig() *bootstrapv1.OpenshiftAssistedConfig {
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Name: "m-0", Namespace: "ns"}}
	config.Spec.Installation.Ignition = "no ignition"
	return config
}

// TestRatcheting: what is wrong already does not keep anybody from changing something else.
func TestRatcheting(t *testing.T) {
	g := NewWithT(t)
	before := brokenConfig()
	_, err := configValidator{}.ValidateCreate(t.Context(), before)
	g.Expect(err).To(HaveOccurred())
	after := before.DeepCopy()
	after.Annotations = map[string]string{bootstrapv1.AgentAnnotation: "agent"}
	_, err = configValidator{}.ValidateUpdate(t.Context(), before, after)
	g.Expect(err).NotTo(HaveOccurred())
	after.Spec.Installation.Ignition = `{"ignition":{"version":"9.0.0"}}`
	_, err = configValidator{}.ValidateUpdate(t.Context(), before, after)
	g.Expect(err).To(MatchError(ContainSubstring("spec.installation.ignition")))

	template := &bootstrapv1.OpenshiftAssistedConfigTemplate{}
	template.Spec.Template.Spec = before.Spec
	_, err = templateValidator{}.ValidateCreate(t.Context(), template)
	g.Expect(err).To(HaveOccurred())
	_, err = templateValidator{}.ValidateUpdate(t.Context(), template, template.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
}

// TestTemplateMetadata: what the providers record on one config does not come to all configs of a template.
func TestTemplateMetadata(t *testing.T) {
	for _, key := range []string{
		bootstrapv1.AgentAnnotation, bootstrapv1.InfraEnvAnnotation, "controlplane.cluster.x-k8s.io/install-attempt",
	} {
		g := NewWithT(t)
		template := &bootstrapv1.OpenshiftAssistedConfigTemplate{}
		template.Spec.Template.ObjectMeta.Annotations = map[string]string{"example.com/team": "a"}
		_, err := templateValidator{}.ValidateCreate(t.Context(), template)
		g.Expect(err).NotTo(HaveOccurred())
		former := template.DeepCopy()
		template.Spec.Template.ObjectMeta.Annotations[key] = "2"
		refused := MatchError(And(ContainSubstring("spec.template.metadata.annotations["+key+"]"), ContainSubstring("is set by the providers")))
		_, err = templateValidator{}.ValidateCreate(t.Context(), template)
		g.Expect(err).To(refused)
		_, err = templateValidator{}.ValidateUpdate(t.Context(), former, template)
		g.Expect(err).To(refused)
		_, err = templateValidator{}.ValidateUpdate(t.Context(), template, template)
		g.Expect(err).NotTo(HaveOccurred())
	}
}
