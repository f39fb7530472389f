// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"encoding/json"
	"strings"
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/openshift/hive/apis/hive/v1/agent"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// admissionCase changes an object that is accepted, and says why it is refused; with an empty text it is not.
type admissionCase struct {
	name string
	// change is what an update changes, or what is created.
	change func(client.Object)
	// status is the object's before the update; it does nothing where it is nil.
	status func(client.Object)
	create bool
	want   string
}

// checkAdmission asks a webhook about updates of base, and about objects that are created like it.
func checkAdmission(t *testing.T, hook string, base func() client.Object, reader client.Reader, tests []admissionCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := base()
			if tt.status != nil {
				tt.status(before)
			}
			after, ok := before.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("the copy of an object is none")
			}
			tt.change(after)
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Namespace: after.GetNamespace(), Name: after.GetName(),
				Object: rawOf(t, after), OldObject: rawOf(t, before),
			}}
			if tt.create {
				req.Operation, req.OldObject = admissionv1.Create, runtime.RawExtension{}
			}
			response := hookNamed(t, hook).admit(t.Context(), reader, req)
			switch {
			case tt.want == "" && !response.Allowed:
				t.Errorf("refused: %s", response.Result.Message)
			case tt.want != "" && (response.Allowed || !strings.Contains(response.Result.Message, tt.want)):
				t.Errorf("answered %v, want the refusal %q", response.Result, tt.want)
			}
		})
	}
}

func hookNamed(t *testing.T, name string) admissionHook {
	t.Helper()
	for _, hook := range admissionHooks() {
		if hook.name == name {
			return hook
		}
	}
	t.Fatalf("no webhook has the name %s", name)
	return admissionHook{}
}

func rawOf(t *testing.T, obj client.Object) runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(obj)
	must(t, err)
	return runtime.RawExtension{Raw: raw}
}

// onInstall makes a change of an AgentClusterInstall one of any object.
func onInstall(change func(*hiveext.AgentClusterInstall)) func(client.Object) {
	return func(obj client.Object) {
		if aci, ok := obj.(*hiveext.AgentClusterInstall); ok {
			change(aci)
		}
	}
}

// completed gives the condition Completed a reason.
func completed(reason string) func(client.Object) {
	return onInstall(func(aci *hiveext.AgentClusterInstall) {
		aci.Status.Conditions = []hivev1.ClusterInstallCondition{{Type: hiveext.ClusterCompletedCondition, Reason: reason}}
	})
}

func TestInstallAdmission(t *testing.T) {
	type install = hiveext.AgentClusterInstall
	base := func() client.Object {
		aci := goodInstall()
		aci.Spec.ImageSetRef = &hivev1.ClusterImageSetReference{Name: "ocp-4.20"}
		return aci
	}
	single := func(platform hiveext.PlatformType, userManaged *bool) func(client.Object) {
		return onInstall(func(aci *install) {
			aci.Spec.ProvisionRequirements.ControlPlaneAgents, aci.Spec.PlatformType = 1, platform
			aci.Spec.Networking.UserManagedNetworking = userManaged
		})
	}
	hold := onInstall(func(aci *install) { aci.Spec.HoldInstallation = true })
	workers := onInstall(func(aci *install) { aci.Spec.ProvisionRequirements.WorkerAgents = 1 })
	metadata := onInstall(func(aci *install) { aci.Spec.ClusterMetadata = &hivev1.ClusterMetadata{ClusterID: "id"} })
	endpoint := onInstall(func(aci *install) { aci.Spec.IgnitionEndpoint = &hiveext.IgnitionEndpoint{Url: "https://i"} })
	label := onInstall(func(aci *install) { aci.Labels = map[string]string{"a": "b"} })
	const snoNetworks, frozen = "UserManagedNetworking must be set to true with SNO", "is immutable after install started"
	const running, done = hiveext.ClusterInstallationInProgressReason, hiveext.ClusterInstalledReason
	checkAdmission(t, "agentclusterinstallvalidators", base, nil, []admissionCase{
		{name: "good", change: func(client.Object) {}, create: true},
		{name: "a single node", change: single(hiveext.NonePlatformType, ptr.To(true)), create: true},
		{name: "a single node that says little", change: single("", nil), create: true},
		{name: "a single node without user-managed networking", change: single("", ptr.To(false)), create: true, want: snoNetworks},
		{name: "a change to that", change: single(hiveext.NonePlatformType, ptr.To(false)), want: snoNetworks},
		{name: "a single node on bare metal", change: single(hiveext.BareMetalPlatformType, nil), create: true, want: "on single node OpenShift"},
		{name: "bare metal with user-managed networking", change: onInstall(func(aci *install) {
			aci.Spec.Networking.UserManagedNetworking = ptr.To(true)
		}), create: true, want: "Can't set baremetal platform with user-managed-networking enabled"},
		{name: "no platform without user-managed networking", change: onInstall(func(aci *install) {
			aci.Spec.PlatformType, aci.Spec.Networking.UserManagedNetworking = hiveext.NonePlatformType, ptr.To(false)
		}), want: "Can't set none platform with user-managed-networking disabled"},
		{name: "another image set", change: onInstall(func(aci *install) { aci.Spec.ImageSetRef.Name = "ocp-4.21" }), want: "ImageSetRef"},
		{name: "no image set", change: onInstall(func(aci *install) { aci.Spec.ImageSetRef = nil }), want: "which is immutable"},
		{name: "a hold before the start", change: hold, status: completed(hiveext.ClusterInstallationNotStartedReason)},
		{name: "a hold of what is on hold", change: workers, status: completed(hiveext.ClusterInstallationOnHoldReason)},
		{
			name:   "a hold after the start",
			change: hold,
			status: completed(running),
			want:   frozen + ", except for ClusterMetadata,IgnitionEndpoint",
		},
		{name: "the field that changed", change: hold, status: completed(running), want: "holdInstallation: (null => true)"},
		{name: "workers after the start", change: workers, status: completed(running), want: frozen},
		{name: "workers of what is installed", change: workers, status: completed(done)},
		{name: "workers of what failed", change: workers, status: completed(hiveext.ClusterInstallationFailedReason)},
		{name: "a hold of what is installed", change: hold, status: completed(done), want: frozen},
		{name: "metadata after the start", change: metadata, status: completed(running)},
		{name: "an endpoint after the start", change: endpoint, status: completed(running)},
		{name: "a label after the start", change: label, status: completed(running)},
	})
}

// TestInstallDefault: the mutating webhook says who manages the network, until the installation has begun.
func TestInstallDefault(t *testing.T) {
	tests := []struct {
		name          string
		controlPlanes int
		platform      hiveext.PlatformType
		reason        string
		want          string // the patch's value; empty: no patch
	}{
		{"three nodes", 3, "", "", "false"},
		{"bare metal", 3, hiveext.BareMetalPlatformType, "", "false"},
		{"no platform", 3, hiveext.NonePlatformType, "", "true"},
		{"external", 3, hiveext.ExternalPlatformType, "", "true"},
		{"a single node", 1, "", "", "true"},
		{"an installation that runs", 1, "", hiveext.ClusterInstallationInProgressReason, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			aci := goodInstall()
			aci.Spec.ProvisionRequirements.ControlPlaneAgents, aci.Spec.PlatformType = tt.controlPlanes, tt.platform
			completed(tt.reason)(aci)
			response := hookNamed(t, mutating).admit(t.Context(), nil, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: rawOf(t, aci),
			}})
			var value string
			for _, patch := range response.Patches {
				value += string(rawValue(t, patch.Value))
			}
			if !response.Allowed || value != tt.want {
				t.Errorf("the webhook answered %v with %q, want %q", response.Result, value, tt.want)
			}
		})
	}
}

func rawValue(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	must(t, err)
	return raw
}

func TestAgentAdmission(t *testing.T) {
	onAgent := func(change func(*aiv1.Agent)) func(client.Object) {
		return func(obj client.Object) {
			if agent, ok := obj.(*aiv1.Agent); ok {
				change(agent)
			}
		}
	}
	base := func() client.Object {
		agent := &aiv1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		agent.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Namespace: "ns", Name: "c1"}
		return agent
	}
	in := func(state, kind string) func(client.Object) {
		return onAgent(func(a *aiv1.Agent) { a.Status.DebugInfo.State, a.Status.Kind = state, kind })
	}
	unbind := onAgent(func(a *aiv1.Agent) { a.Spec.ClusterDeploymentName = nil })
	other := onAgent(func(a *aiv1.Agent) { a.Spec.ClusterDeploymentName.Name = "c2" })
	role := onAgent(func(a *aiv1.Agent) { a.Spec.Role = roleWorker })
	const frozen = "Attempted to change Spec.ClusterDeploymentName which is immutable during Agent installation."
	tests := []admissionCase{
		{name: "two disks", change: onAgent(func(a *aiv1.Agent) {
			a.Spec.InstallationDiskID, a.Spec.InstallationDiskPath = "id", "/dev/sda"
		}), want: "Either InstallationDiskID or InstallationDiskPath can be set, not both."},
		{name: "a cluster elsewhere", change: onAgent(func(a *aiv1.Agent) {
			a.Spec.ClusterDeploymentName.Namespace = "elsewhere"
		}), create: true, want: "must match the Agent namespace"},
		{name: "unbind before the installation", change: unbind, status: in(hostKnown, kindHost)},
		{name: "unbind of an installed host", change: unbind, status: in(hostInstalled, kindHost)},
		{name: "unbind of a cancelled host", change: unbind, status: in(hostCancelled, kindHost)},
		{name: "unbind of a day-2 host", change: unbind, status: in(hostInstallingInProgress, kindAddition)},
		{name: "another cluster for a day-2 host", change: other, status: in(hostInstallingInProgress, kindAddition), want: frozen},
		{name: "a role in the installation", change: role, status: in(hostInstalling, kindHost)},
	}
	for _, state := range installingStates {
		tests = append(tests, admissionCase{name: "unbind in " + state, change: unbind, status: in(state, kindHost), want: frozen})
	}
	checkAdmission(t, "agentvalidators", base, nil, tests)
}

func TestInfraEnvAdmission(t *testing.T) {
	onEnv := func(change func(*aiv1.InfraEnvSpec)) func(client.Object) {
		return func(obj client.Object) {
			if env, ok := obj.(*aiv1.InfraEnv); ok {
				change(&env.Spec)
			}
		}
	}
	unbound := func() client.Object {
		return &aiv1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ie"}}
	}
	bound := func(name string) func() client.Object {
		return func() client.Object {
			env := &aiv1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ie"}}
			env.Spec.ClusterRef = &aiv1.ClusterReference{Namespace: "ns", Name: name}
			return env
		}
	}
	image := onEnv(func(s *aiv1.InfraEnvSpec) { s.OSImageVersion = "4.20" })
	scheme := runtime.NewScheme()
	must(t, AddToScheme(scheme))
	old := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "old"}}
	old.Spec.Installed = true
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(old).Build()
	checkAdmission(t, "infraenvvalidators", unbound, reader, []admissionCase{
		{name: "an OS image", change: image, create: true},
		{name: "a cluster that comes later", change: onEnv(func(s *aiv1.InfraEnvSpec) {
			s.ClusterRef = &aiv1.ClusterReference{Namespace: "ns", Name: "c1"}
		}), want: "Attempted to change Spec.ClusterRef which is immutable after InfraEnv creation."},
		{name: "the default architecture", change: onEnv(func(s *aiv1.InfraEnvSpec) { s.CPUArchitecture = "x86_64" })},
		{name: "another architecture", change: onEnv(func(s *aiv1.InfraEnvSpec) { s.CPUArchitecture = "aarch64" }), want: "Spec.CpuArchitecture"},
	})
	checkAdmission(t, "infraenvvalidators", bound("new"), reader, []admissionCase{
		{name: "cluster and OS image", change: image, create: true, want: "should be specified (not both)"},
		{name: "an OS image before the installation", change: image, want: "when the cluster is not installed yet"},
	})
	checkAdmission(
		t,
		"infraenvvalidators",
		bound("old"),
		reader,
		[]admissionCase{{name: "an OS image of an installed cluster", change: image}},
	)
}

func TestDeploymentAdmission(t *testing.T) {
	onDeployment := func(change func(*hivev1.ClusterDeploymentSpec)) func(client.Object) {
		return func(obj client.Object) {
			if cd, ok := obj.(*hivev1.ClusterDeployment); ok {
				change(&cd.Spec)
			}
		}
	}
	base := func() client.Object {
		cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1"}}
		cd.Spec.ClusterName, cd.Spec.BaseDomain = "c1", "example.com"
		cd.Spec.Platform.AgentBareMetal = &agent.BareMetalPlatform{}
		cd.Spec.ClusterInstallRef = &hivev1.ClusterInstallLocalReference{
			Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall", Name: "c1",
		}
		return cd
	}
	installed := onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
		s.Installed, s.ClusterMetadata = true, &hivev1.ClusterMetadata{ClusterID: "id"}
	})
	checkAdmission(t, "clusterdeploymentvalidators", base, nil, []admissionCase{
		{name: "good", change: func(client.Object) {}, create: true},
		{name: "a name that is too long", change: onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
			s.ClusterName = strings.Repeat("a", 64)
		}), create: true, want: "Invalid cluster name (.spec.clusterName): must be no more than 63"},
		{name: "no platform", change: onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
			s.Platform.AgentBareMetal = nil
		}), create: true, want: "must specify a platform"},
		{name: "nothing to install by", change: onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
			s.ClusterInstallRef = nil
		}), create: true, want: "provisioning is required if not installed"},
		{name: "an unknown installer", change: onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
			s.ClusterInstallRef.Kind = "Other"
		}), create: true, want: "spec.clusterInstallRef.kind: Unsupported value"},
		{name: "another domain", change: onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
			s.BaseDomain = "example.org"
		}), want: `baseDomain: ("example.com" => "example.org")`},
		{name: "installed", change: installed},
		{name: "installed without metadata", change: onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
			s.Installed = true
		}), want: "installed cluster must have cluster metadata"},
		{name: "uninstalled", status: installed, change: onDeployment(func(s *hivev1.ClusterDeploymentSpec) {
			s.Installed = false
		}), want: "cannot make uninstalled once installed"},
	})
	t.Run("protected", func(t *testing.T) {
		cd := base()
		cd.SetAnnotations(map[string]string{protectedDelete: "true"})
		req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: rawOf(t, cd)}}
		response := hookNamed(t, "clusterdeploymentvalidators").admit(t.Context(), nil, req)
		if response.Allowed || response.Result.Reason != metav1.StatusReasonInvalid {
			t.Errorf("the deletion of a protected ClusterDeployment was answered with %v", response.Result)
		}
	})
}
