// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
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

// neverChangeable are the fields of install that the CRD guards.
var neverChangeable = []string{"baseDomain", "clusterName", "platform", "twoNode", "external", "pullSecretRef"}

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
		moved := valid()
		moved.Annotations = map[string]string{controlplanev1.InstalledClusterAnnotation: "{}"}
		check(t, changeOf(moved, change), refusalUnless(false, name, controlplanev1.InstallPhaseCompleted))
	}
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

// TestEveryFieldHasAWindow: a new field of install is guarded by the CRD or by the webhook.
func TestEveryFieldHasAWindow(t *testing.T) {
	typ := reflect.TypeFor[controlplanev1.InstallSpec]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		_, before := changesBefore[name]
		never := regexp.MustCompile("^(" + strings.Join(neverChangeable, "|") + ")$").MatchString(name)
		if before == never {
			t.Errorf("install.%s: before the installation %t, never changeable %t: must be one of the two", name, before, never)
		}
	}
}

// TestReleaseWindow: the release is fixed until the cluster is installed, and free for another attempt and for upgrades.
func TestReleaseWindow(t *testing.T) {
	change := func(former *controlplanev1.OpenshiftAssistedControlPlane) error {
		changed := former.DeepCopy()
		changed.Spec.DistributionVersion, changed.Spec.Release.Image = "4.21.0", "registry.example.com/release:4.21.0"
		_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, changed)
		return err
	}
	for _, phase := range []string{"", controlplanev1.InstallPhaseWaitingForHosts, controlplanev1.InstallPhaseInstalling} {
		former := valid()
		former.Status.Install.Phase = phase
		check(t, change(former), []string{"spec.distributionVersion", "spec.release", "is fixed until the cluster is installed"})
	}
	failed, upgraded, moved := valid(), valid(), valid()
	failed.Status.Install.Phase = controlplanev1.InstallPhaseFailed
	upgraded.Status.Initialization.ControlPlaneInitialized = new(true)
	moved.Annotations = map[string]string{controlplanev1.InstalledClusterAnnotation: "{}"}
	for _, former := range []*controlplanev1.OpenshiftAssistedControlPlane{failed, upgraded, moved} {
		check(t, change(former), nil)
	}
}
