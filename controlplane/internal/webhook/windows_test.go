// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
	"github.com/capi-openshift/agent-providers/test/crdschema"
	"github.com/capi-openshift/agent-providers/test/windows"
)

// changesBefore change every field of install that is changeable before the installation.
var changesBefore = map[string]func(*controlplanev1.InstallSpec){
	"apiVIPs":                 func(i *controlplanev1.InstallSpec) { i.APIVIPs[0] = "192.0.2.7" },
	"ingressVIPs":             func(i *controlplanev1.InstallSpec) { i.IngressVIPs[0] = "192.0.2.8" },
	"loadBalancer":            func(i *controlplanev1.InstallSpec) { i.LoadBalancer.Type = controlplanev1.LoadBalancerUserManaged },
	"schedulableControlPlane": func(i *controlplanev1.InstallSpec) { i.SchedulableControlPlane = new(true) },
	"networking":              func(i *controlplanev1.InstallSpec) { i.Networking.NetworkType = "Cilium" },
	"sshAuthorizedKey":        func(i *controlplanev1.InstallSpec) { i.SSHAuthorizedKey = "ssh-ed25519 AAAA" },
	"proxy":                   func(i *controlplanev1.InstallSpec) { i.Proxy = bootstrapv1.ProxySpec{HTTPProxy: "http://p"} },
	"ntpSources":              func(i *controlplanev1.InstallSpec) { i.NTPSources = []string{"ntp"} },
	"diskEncryption":          func(i *controlplanev1.InstallSpec) { i.DiskEncryption.Mode = controlplanev1.DiskEncryptionTPM2 },
	"manifestsConfigMapRefs": func(i *controlplanev1.InstallSpec) {
		i.ManifestsConfigMapRefs = []controlplanev1.LocalConfigMapReference{{Name: "a"}}
	},
	"mirrorRegistryRef": func(i *controlplanev1.InstallSpec) { i.MirrorRegistryRef.Name = "a" },
	"hyperthreading":    func(i *controlplanev1.InstallSpec) { i.Hyperthreading.Worker = controlplanev1.HyperthreadingDisabled },
	"holdInstallation":  func(i *controlplanev1.InstallSpec) { i.HoldInstallation = new(true) },
	"capabilities":      func(i *controlplanev1.InstallSpec) { i.Capabilities.Baseline = "v4.18" },
	"featureSet":        func(i *controlplanev1.InstallSpec) { i.FeatureSet = "TechPreviewNoUpgrade" },
	"fips":              func(i *controlplanev1.InstallSpec) { i.FIPS = new(true) },
	"cpuPartitioning":   func(i *controlplanev1.InstallSpec) { i.CPUPartitioning = "AllNodes" },
	"configOverrides": func(i *controlplanev1.InstallSpec) {
		i.ConfigOverrides = runtime.RawExtension{Raw: []byte(`{"publish":"Internal"}`)}
	},
	"ignoredValidations":       func(i *controlplanev1.InstallSpec) { i.IgnoredValidations.Host = []string{"has-min-memory"} },
	"workerWaitTimeoutSeconds": func(i *controlplanev1.InstallSpec) { i.WorkerWaitTimeoutSeconds = new(int32(1)) },
}

// TestWindows: a change is taken until the installation begins, and again when it has failed.
func TestWindows(t *testing.T) {
	phases := map[string]bool{
		"": true, controlplanev1.InstallPhaseWaitingForHosts: true, controlplanev1.InstallPhaseFailed: true,
		controlplanev1.InstallPhasePreparing: false, controlplanev1.InstallPhaseInstalling: false, controlplanev1.InstallPhaseFinalizing: false,
		controlplanev1.InstallPhaseCompleted: false,
	}
	for name, change := range changesBefore {
		for phase, open := range phases {
			former := valid()
			former.Status.Install.Phase = phase
			check(t, changeOf(former, change), refusalUnless(open, name, phase))
		}
		check(t, changeOf(recorded("1"), change), refusalUnless(false, name, controlplanev1.InstallPhaseCompleted))
		check(t, changeOf(recorded("2"), change), nil)
	}
}

// recorded is a moved control plane that wants an attempt, without a status, and with the record of the first one.
func recorded(attempt string) *controlplanev1.OpenshiftAssistedControlPlane {
	cp := valid()
	cp.Annotations = map[string]string{
		controlplanev1.InstalledClusterAnnotation: view.RecordOf(cp, hivev1.ClusterMetadata{ClusterID: "3c1d", InfraID: "demo-x7"}).String(),
		controlplanev1.InstallAttemptAnnotation:   attempt,
	}
	return cp
}

func changeOf(former *controlplanev1.OpenshiftAssistedControlPlane, change func(*controlplanev1.InstallSpec)) error {
	changed := former.DeepCopy()
	change(&changed.Spec.Install)
	_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, changed)
	return err
}

func refusalUnless(open bool, name, phase string) []string {
	if open {
		return nil
	}
	return []string{"spec.install." + name, "changeable before the installation only", "in phase " + phase}
}

// TestEveryFieldHasAWindow: what the description of a field says about changes is what admission does. What is never changeable, a rule of
// the CRD refuses where it sees what the field means.
func TestEveryFieldHasAWindow(t *testing.T) {
	schema, err := crdschema.ReadKind("../../../config/controlplane/crd/bases", "OpenshiftAssistedControlPlane")
	if err != nil {
		t.Fatal(err)
	}
	waiting, installing, failed, installed := valid(), valid(), valid(), valid()
	waiting.Status.Install.Phase = controlplanev1.InstallPhaseWaitingForHosts
	installing.Status.Install.Phase = controlplanev1.InstallPhaseInstalling
	failed.Status.Install.Phase = controlplanev1.InstallPhaseFailed
	installed.Status.Install.Phase = controlplanev1.InstallPhaseCompleted
	installed.Status.Initialization.ControlPlaneInitialized = new(true)
	refused := map[windows.Window]func(former *controlplanev1.OpenshiftAssistedControlPlane) bool{
		windows.BeforeInstallation: func(former *controlplanev1.OpenshiftAssistedControlPlane) bool {
			return former == installing || former == installed
		},
		windows.AfterInstallation: func(former *controlplanev1.OpenshiftAssistedControlPlane) bool {
			return former == waiting || former == installing
		},
		windows.AtAnyTime: func(*controlplanev1.OpenshiftAssistedControlPlane) bool { return false },
		windows.Never:     func(*controlplanev1.OpenshiftAssistedControlPlane) bool { return true },
	}
	for path, change := range windows.Changes[controlplanev1.OpenshiftAssistedControlPlaneSpec]() {
		said := windows.At(schema, path)
		if len(said) == 0 {
			t.Fatalf("%s: its description does not say when it can be changed", path)
		}
		if said[0] == windows.Never && hasImmutable(schema, path) {
			continue
		}
		if path == "spec.openshiftAssistedConfigSpec.cpuArchitecture" {
			continue // TestReleaseWindow
		}
		for _, former := range []*controlplanev1.OpenshiftAssistedControlPlane{waiting, installing, failed, installed} {
			changed := former.DeepCopy()
			change(&changed.Spec)
			errs := webhook.ValidateWindows(former, changed, field.NewPath("spec"))
			if want := refused[said[0]](former); len(errs) > 0 != want {
				t.Errorf("%s in phase %s: refused is %t, want %t for %q: %v", path, former.Status.Install.Phase, len(errs) > 0, want, said[0], errs)
			}
			if len(errs) > 0 && !strings.HasPrefix(path+".", errs[0].Field+".") {
				t.Errorf("%s: the refusal is of %s", path, errs[0].Field)
			}
		}
	}
}

// hasImmutable looks for the rule that compares a field of the spec, or the one around it, with what it was.
func hasImmutable(schema *apiextensionsv1.JSONSchemaProps, path string) bool {
	return slices.ContainsFunc(schema.Properties["spec"].XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		text := strings.ReplaceAll(rule.Rule, ".?", ".") // The default of a field is what it means when it is not set.
		return rule.FieldPath != "" && strings.HasPrefix(path+".", "spec"+rule.FieldPath+".") &&
			strings.Contains(text, " oldSelf"+rule.FieldPath) && strings.Contains(rule.Message, "is immutable")
	})
}

// TestReleaseWindow: the release is fixed until the cluster is installed, and free for another attempt and for upgrades.
func TestReleaseWindow(t *testing.T) {
	change := func(former *controlplanev1.OpenshiftAssistedControlPlane) error {
		changed := former.DeepCopy()
		changed.Spec.DistributionVersion, changed.Spec.Release.Image = "4.21.0", "registry.example.com/release:4.21.0"
		_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, changed)
		return err
	}
	refusal := []string{"spec.distributionVersion", "spec.release", "is fixed until the cluster is installed"}
	for _, phase := range []string{"", controlplanev1.InstallPhaseWaitingForHosts, controlplanev1.InstallPhaseInstalling} {
		former := valid()
		former.Status.Install.Phase = phase
		check(t, change(former), refusal)
	}
	check(t, change(recorded("2")), refusal)
	failed, upgraded := valid(), valid()
	failed.Status.Install.Phase = controlplanev1.InstallPhaseFailed
	upgraded.Status.Initialization.ControlPlaneInitialized = new(true)
	for _, former := range []*controlplanev1.OpenshiftAssistedControlPlane{failed, upgraded, recorded("1")} {
		check(t, change(former), nil)
	}
}

// TestArchitectureWindow: the architecture is fixed where it chooses the release image, before the installation and after it, and free for
// another attempt.
func TestArchitectureWindow(t *testing.T) {
	const before, after = "is fixed until the cluster is installed",
		"set spec.release.image to an image for all of them first, such as quay.io/openshift-release-dev/ocp-release:4.20.4-multi"
	failed, initialized := valid(), valid()
	failed.Status.Install.Phase = controlplanev1.InstallPhaseFailed
	initialized.Status.Initialization.ControlPlaneInitialized = new(true)
	states := map[*controlplanev1.OpenshiftAssistedControlPlane]string{
		valid(): before, failed: "", recorded("2"): before, initialized: after, recorded("1"): after,
	}
	type spec = controlplanev1.OpenshiftAssistedControlPlaneSpec
	aarch64 := func(s *spec) { s.OpenshiftAssistedConfigSpec.CPUArchitecture = "aarch64" }
	for name, tc := range map[string]struct {
		former, change func(*spec)
		refused        bool
	}{
		"another one":                 {func(*spec) {}, aarch64, true},
		"the default is written":      {func(*spec) {}, func(s *spec) { s.OpenshiftAssistedConfigSpec.CPUArchitecture = "x86_64" }, false},
		"another one than a set one":  {aarch64, func(s *spec) { s.OpenshiftAssistedConfigSpec.CPUArchitecture = "" }, true},
		"the image is named":          {func(s *spec) { s.Release.Image = "registry.example.com/release:4.20.4" }, aarch64, false},
		"the ClusterImageSet is":      {func(s *spec) { s.Release.ImageSetRef.Name = "ocp-4.20" }, aarch64, false},
		"images of OKD have none":     {func(s *spec) { s.DistributionVersion = "4.20.0-okd-scos.1" }, aarch64, false},
		"nothing but another replica": {aarch64, func(s *spec) { s.Replicas = new(int32(5)) }, false},
	} {
		for state, text := range states {
			former := state.DeepCopy()
			tc.former(&former.Spec)
			changed := former.DeepCopy()
			tc.change(&changed.Spec)
			var want []string
			if tc.refused && text != "" {
				want = []string{"spec.openshiftAssistedConfigSpec.cpuArchitecture", text}
			}
			t.Run(name, func(t *testing.T) {
				_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, changed)
				check(t, err, want)
			})
		}
	}
	upgrade := initialized.DeepCopy()
	upgrade.Spec.DistributionVersion = "4.21.0"
	_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), initialized, upgrade)
	check(t, err, nil) // The image is another one, and not by the architecture.
	upgrade.Spec.Release.Image = "registry.example.com/release:4.21.0-multi"
	aarch64(&upgrade.Spec)
	_, err = (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), initialized, upgrade)
	check(t, err, nil)
}

// TestReleaseOfSeveralArchitectures: the image of a cluster whose hosts are of several architectures does not give way to the public one,
// which is for one of them. Another image may be named, also by a ClusterImageSet.
func TestReleaseOfSeveralArchitectures(t *testing.T) {
	const multi, digest = "quay.io/openshift-release-dev/ocp-release:4.20.4-multi", "registry.example.com/release@sha256:5b2a"
	refusal := []string{"spec.release", "must not be removed", "is for x86_64 alone", "such as " + multi}
	both := controlplanev1.ReleaseStatus{Image: digest, Architectures: []string{"aarch64", "x86_64"}}
	removed := func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release = controlplanev1.ReleaseSpec{} }
	for name, tc := range map[string]struct {
		image    string
		resolved controlplanev1.ReleaseStatus
		change   func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)
		want     []string
	}{
		"its tag tells":              {multi, controlplanev1.ReleaseStatus{}, removed, refusal},
		"the registry has told":      {digest, both, removed, refusal},
		"it is for one":              {digest, controlplanev1.ReleaseStatus{Image: digest, Architectures: []string{"x86_64"}}, removed, nil},
		"nobody knows":               {digest, controlplanev1.ReleaseStatus{}, removed, nil},
		"status is of another image": {digest + "0", both, removed, nil},
		"another image is named": {digest, both, func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Release.Image = "registry.example.com/release:4.20.4-x86_64"
		}, nil},
		"a ClusterImageSet is named": {digest, both, func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Release = controlplanev1.ReleaseSpec{ImageSetRef: controlplanev1.ClusterImageSetReference{Name: "ocp-4.20"}}
		}, nil},
		"the release changes too": {multi, both, func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Release, s.DistributionVersion = controlplanev1.ReleaseSpec{}, "4.21.0"
		}, []string{"spec.release", "the public image of 4.21.0", "ocp-release:4.21.0-multi"}},
	} {
		t.Run(name, func(t *testing.T) {
			former := recorded("1")
			former.Spec.Release.Image, former.Status.Release = tc.image, tc.resolved
			changed := former.DeepCopy()
			tc.change(&changed.Spec)
			_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, changed)
			check(t, err, tc.want)
		})
	}
}
