// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

type change = func(*controlplanev1.InstallSpec)

// sameMeaning are two forms of a field each that mean the same, by the name of the field.
var sameMeaning = map[string]struct {
	a, b change
	// otherInstall says that the two make AgentClusterInstalls that differ.
	otherInstall bool
}{
	"schedulableControlPlane": {func(i *controlplanev1.InstallSpec) { i.SchedulableControlPlane = new(false) }, unset, false},
	"holdInstallation":        {func(i *controlplanev1.InstallSpec) { i.HoldInstallation = new(false) }, unset, false},
	"fips":                    {func(i *controlplanev1.InstallSpec) { i.FIPS = new(false) }, unset, false},
	"workerWaitTimeoutSeconds": {
		func(i *controlplanev1.InstallSpec) { i.WorkerWaitTimeoutSeconds = new(int32(1800)) }, unset, false,
	},
	"networking": {
		func(i *controlplanev1.InstallSpec) {
			i.Networking.NetworkType = controlplanev1.NetworkTypeOVNKubernetes
			i.Networking.ClusterNetwork = []controlplanev1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}}
		},
		func(i *controlplanev1.InstallSpec) {
			i.Networking.ClusterNetwork = []controlplanev1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14"}}
		},
		false,
	},
	"diskEncryption": {
		func(i *controlplanev1.InstallSpec) {
			i.DiskEncryption = controlplanev1.DiskEncryptionSpec{
				Mode: controlplanev1.DiskEncryptionTPM2, Roles: []controlplanev1.HostRole{"Worker", "ControlPlane", "Arbiter"},
			}
		},
		func(i *controlplanev1.InstallSpec) { i.DiskEncryption.Mode = controlplanev1.DiskEncryptionTPM2 },
		false,
	},
	"diskEncryption.tangServers": {tang("a", "b"), tang("b", "a"), true},
	"loadBalancer":               {func(i *controlplanev1.InstallSpec) { i.LoadBalancer.Type = "ClusterManaged" }, unset, true},
	"cpuPartitioning":            {func(i *controlplanev1.InstallSpec) { i.CPUPartitioning = "None" }, unset, true},
	"hyperthreading": {
		func(i *controlplanev1.InstallSpec) {
			i.Hyperthreading = controlplanev1.HyperthreadingSpec{ControlPlane: "Enabled", Arbiter: "Enabled", Worker: "Enabled"}
		},
		unset,
		true,
	},
	"ntpSources":           {names("ntpSources", "a", "b"), names("ntpSources", "b", "a"), true},
	"proxy.noProxy":        {names("noProxy", "a", "b"), names("noProxy", "b", "a"), true},
	"capabilities":         {names("additional", "Build", "Console"), names("additional", "Console", "Build"), true},
	"ignoredValidations":   {names("cluster", "a", "b"), names("cluster", "b", "a"), true},
	"ignoredValidations.2": {names("host", "a", "b"), names("host", "b", "a"), true},
	"manifestsConfigMapRefs": {
		func(i *controlplanev1.InstallSpec) {
			i.ManifestsConfigMapRefs = []controlplanev1.LocalConfigMapReference{{Name: "a"}, {Name: "b"}}
		},
		func(i *controlplanev1.InstallSpec) {
			i.ManifestsConfigMapRefs = []controlplanev1.LocalConfigMapReference{{Name: "b"}, {Name: "a"}}
		},
		true,
	},
}

func unset(*controlplanev1.InstallSpec) {}

func tang(urls ...string) change {
	return func(i *controlplanev1.InstallSpec) {
		i.DiskEncryption.Mode = controlplanev1.DiskEncryptionTang
		for _, url := range urls {
			i.DiskEncryption.TangServers = append(i.DiskEncryption.TangServers, controlplanev1.TangServer{URL: url, Thumbprint: "t" + url})
		}
	}
}

func names(field string, list ...string) change {
	return func(i *controlplanev1.InstallSpec) {
		switch field {
		case "ntpSources":
			i.NTPSources = list
		case "noProxy":
			i.Proxy = bootstrapv1.ProxySpec{HTTPProxy: "http://p", NoProxy: list}
		case "additional":
			i.Capabilities = controlplanev1.CapabilitiesSpec{Baseline: "None", Additional: list}
		case "cluster":
			i.IgnoredValidations.Cluster = list
		case "host":
			i.IgnoredValidations.Host = list
		}
	}
}

// TestTheSameIsNoChange: a field may take another form that means the same once the control plane is initialized, and before only if the
// AgentClusterInstall stays the same, because another one would be reported as a change that came too late.
func TestTheSameIsNoChange(t *testing.T) {
	for name, tc := range sameMeaning {
		for way, forms := range map[string][2]change{"": {tc.a, tc.b}, ", the other way": {tc.b, tc.a}} {
			t.Run(name+way, func(t *testing.T) {
				former := valid()
				forms[0](&former.Spec.Install)
				change := func(install *controlplanev1.InstallSpec) {
					*install = valid().Spec.Install
					forms[1](install)
				}
				former.Status.Install.Phase = controlplanev1.InstallPhaseInstalling
				var want []string
				if record(t, former, unset) != record(t, former, change) {
					want = []string{"changeable before the installation only", "in phase Installing"}
				}
				if tc.otherInstall != (want != nil) {
					t.Errorf("the AgentClusterInstall is another one: %t, want %t", want != nil, tc.otherInstall)
				}
				check(t, changeOf(former, change), want)
				former.Status.Install.Phase = controlplanev1.InstallPhaseCompleted
				former.Status.Initialization.ControlPlaneInitialized = new(true)
				check(t, changeOf(former, change), nil)
			})
		}
	}
}

// TestTheNameOfTheClusterMayBeWritten: the name of the Cluster is what no name means, at any time, and no other name is.
func TestTheNameOfTheClusterMayBeWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		owner, had, has string
		refused         bool
	}{
		"it is written":                {owner: "demo", has: "demo"},
		"it is left out":               {owner: "demo", had: "demo"},
		"another one is written":       {owner: "demo", has: "other", refused: true},
		"another one is left out":      {owner: "demo", had: "other", refused: true},
		"it takes another one's place": {owner: "demo", had: "other", has: "demo", refused: true},
		"nobody knows that it is it":   {has: "demo", refused: true},
		"nobody knows that it was it":  {had: "demo", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, phase := range []string{"", controlplanev1.InstallPhaseInstalling, controlplanev1.InstallPhaseFailed} {
				former := valid()
				former.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "Cluster", Name: "none"},
					{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Other", Name: "none"},
				}
				if tc.owner != "" {
					former.OwnerReferences = append(
						former.OwnerReferences, metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: tc.owner},
					)
				}
				former.Spec.Install.ClusterName, former.Status.Install.Phase = tc.had, phase
				var want []string
				if tc.refused {
					want = []string{"spec.install.clusterName", "is immutable"}
				}
				check(t, changeOf(former, func(i *controlplanev1.InstallSpec) { i.ClusterName = tc.has }), want)
			}
		})
	}
}

// record is what the AgentClusterInstall of a changed control plane is recognised by.
func record(t *testing.T, former *controlplanev1.OpenshiftAssistedControlPlane, change change) string {
	t.Helper()
	cp := former.DeepCopy()
	change(&cp.Spec.Install)
	object, err := render.Install{ControlPlane: cp, Cluster: &clusterv1.Cluster{}}.Object()
	if err != nil {
		t.Fatal(err)
	}
	return object.GetAnnotations()[assisted.InstallSpecAnnotation]
}
