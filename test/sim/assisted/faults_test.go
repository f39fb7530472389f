// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"slices"
	"strings"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

func TestHostBootsAtLast(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	f.sim.Faults().HostNeverBoots(f.key("h0"), true)
	h0 := f.boot("h0", "ie")
	h1 := f.boot("h1", "ie")
	f.waitAgent(h1, hostKnownUnbound)
	if f.agent(h0).UID != "" {
		t.Error("a host that never boots has registered")
	}
	f.sim.Faults().HostNeverBoots(f.key("h0"), false)
	f.waitAgent(h0, hostKnownUnbound)
}

// TestBootFails: a host whose boot failed registers when it is power-cycled, and not before.
func TestBootFails(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	f.sim.Faults().BootsFail(f.key("h0"), 1)
	h0 := f.boot("h0", "ie")
	h1 := f.boot("h1", "ie")
	f.waitAgent(h1, hostKnownUnbound)
	if f.agent(h0).UID != "" {
		t.Error("a host whose boot failed has registered")
	}
	f.sim.PowerOff(f.key("h0"))
	f.sim.Reboot(f.key("h0"))
	f.waitAgent(h0, hostKnownUnbound)
}

func TestAgentVanishes(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	name := f.boot("h0", "ie")
	f.waitAgent(name, hostKnownUnbound)
	uid := f.agent(name).UID
	must(t, f.sim.Faults().AgentVanishes(f.ctx, f.key("h0"), 0))
	f.eventually("the host to freeze", func() bool { return f.sim.Frozen(f.key("h0")) })
	f.eventually("the Agent to be gone", func() bool { return f.agent(name).UID == "" })
	f.sim.Reboot(f.key("h0"))
	f.waitAgent(name, hostKnownUnbound)
	if f.agent(name).UID == uid {
		t.Error("the Agent is the old one")
	}
}

// TestNoPowerNoAgent: a host that was provisioned and cannot be powered on boots nothing, however soon it should (METAL3 M3-63).
func TestNoPowerNoAgent(t *testing.T) {
	b := New(Options{Durations: fastDurations()}).backend
	m := &machine{key: HostKey{Namespace: "ns", Name: "h"}, hub: b}
	host := &bmov1alpha1.BareMetalHost{Spec: bmov1alpha1.BareMetalHostSpec{Online: true}}
	b.observePower(m, host)
	if m.mode != machineOff {
		t.Error("a host without power was booted")
	}
	host.Status.PoweredOn = true
	b.observePower(m, host)
	if m.mode != machineBooting {
		t.Error("a host with power was not booted")
	}
}

// TestPowerCycleThatIsMissed: a simulator that never saw a BareMetalHost without power boots its machine again all the same.
func TestPowerCycleThatIsMissed(t *testing.T) {
	b := New(Options{Durations: fastDurations()}).backend
	m := &machine{key: HostKey{Namespace: "ns", Name: "h"}, hub: b, mode: machineFrozen}
	b.machines[m.key] = m
	host := &bmov1alpha1.BareMetalHost{Status: bmov1alpha1.BareMetalHostStatus{PoweredOn: true}}
	b.observePower(m, host)
	if m.mode != machineFrozen {
		t.Error("a host that has power all the time was booted")
	}
	b.metal.PowerOff(m.key)
	b.observePower(m, host)
	if m.mode != machineBooting {
		t.Error("a host whose power was cut was not booted again")
	}
}

// TestOneIdentityTwice boots two machines with one serial number: they share an Agent, which shows one or the other.
func TestOneIdentityTwice(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	for host, mac := range map[string]string{"h0": "52:54:00:00:00:0a", "h1": "52:54:00:00:00:0b"} {
		must(t, f.sim.BootHost(f.key(host), f.key("ie"), HostHardware{Serial: "same", NICs: []NIC{{Name: "eno1", MAC: mac}}}))
	}
	f.waitAgent(md5UUID("same"), hostKnownUnbound)
	agents := &aiv1.AgentList{}
	must(t, f.client.List(f.ctx, agents))
	mine := slices.DeleteFunc(agents.Items, func(a aiv1.Agent) bool { return a.Namespace != f.namespace })
	if len(mine) != 1 {
		t.Errorf("two machines of one serial number have %d Agents", len(mine))
	}
}

// TestServiceDown stops the service while a host boots: nothing is written until it is back.
func TestServiceDown(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	start := time.Now()
	f.sim.Faults().ServiceDown(2 * time.Second)
	name := f.boot("h0", "ie")
	f.waitAgent(name, hostKnownUnbound)
	if took := time.Since(start); took < 2*time.Second {
		t.Errorf("the host registered after %s with a service that was down for 2s", took)
	}
	f.sim.Faults().ServiceDown(time.Hour)
	late := f.boot("h1", "ie")
	f.sim.Faults().ServiceUp()
	f.waitAgent(late, hostKnownUnbound)
}

// TestClusterValidation fails a check of a cluster and clears it.
func TestClusterValidation(t *testing.T) {
	f := newFixture(t, Options{})
	f.sim.Faults().ClusterValidationFails(f.key("s1"), "dns", "DNS of api.s1.example.com does not resolve")
	f.cluster("s1", 1, 0, true)
	f.infraEnv("ie", "s1")
	name := f.boot("h0", "ie")
	f.waitAgent(name, hostKnown)
	f.eventually("the message", func() bool {
		for _, c := range f.aci("s1").Status.Conditions {
			if c.Type == condValidated && c.Message == "The cluster's validations are failing: DNS of api.s1.example.com does not resolve" {
				return true
			}
		}
		return false
	})
	if failing := failingChecks(f.aci("s1")); !slices.Equal(failing, []string{"dns"}) {
		t.Errorf("the failing checks are %v", failing)
	}
	f.sim.Faults().ClusterValidationFails(f.key("s1"), "dns", "")
	f.waitCluster("s1", clusterReady)
	if failing := failingChecks(f.aci("s1")); len(failing) > 0 {
		t.Errorf("the failing checks of a cluster that is ready are %v", failing)
	}
}

// failingChecks are the identifiers of the checks that fail by an AgentClusterInstall's validationsInfo.
func failingChecks(aci *hiveext.AgentClusterInstall) []string {
	var failing []string
	for _, group := range aci.Status.ValidationsInfo {
		for _, check := range group {
			if check.Status != "success" {
				failing = append(failing, check.ID)
			}
		}
	}
	return failing
}

// TestManifestsFail is ASSISTED 3.10: the service says why it cannot prepare the installation, begins anew, and installs once it can.
func TestManifestsFail(t *testing.T) {
	f := newFixture(t, Options{})
	f.sim.Faults().ManifestsFail(f.key("s1"), "error running openshift-install manifests")
	f.cluster("s1", 1, 0, false)
	f.infraEnv("ie", "s1")
	name := f.boot("h0", "ie")
	f.waitAgent(name, hostKnown)
	f.patchAgent(name, func(a *aiv1.Agent) { a.Spec.Approved = true })
	for range 2 {
		f.waitPreparation("s1", clusterPreparing, "There is no failing prior preparation attempt", "")
		f.waitPreparation("s1", clusterReady, "The last installation preparation failed", "error running openshift-install manifests")
	}
	if f.aci("s1").Spec.ClusterMetadata != nil {
		t.Error("the cluster was installed without manifests")
	}
	f.sim.Faults().ManifestsFail(f.key("s1"), "")
	f.waitCluster("s1", clusterAddingHosts)
	f.waitPreparation("s1", clusterAddingHosts, "There is no failing prior preparation attempt", "")
}

// waitPreparation waits for a cluster that is in a state and says of its preparation what is wanted.
func (f *fixture) waitPreparation(name, state, reason, message string) {
	f.t.Helper()
	f.eventually("AgentClusterInstall "+name+" in state "+state+" with the reason "+reason, func() bool {
		aci := f.aci(name)
		return aci.Status.DebugInfo.State == state && slices.ContainsFunc(aci.Status.Conditions, func(c hivev1.ClusterInstallCondition) bool {
			return c.Type == condPreparationFailed && c.Reason == reason && strings.HasSuffix(c.Message, message)
		})
	})
}

// TestRegistrationGate is ASSISTED facts 1 and 10: a cluster that installs takes no new host, and an InfraEnv stays
// bound to the cluster that it was made for.
func TestRegistrationGate(t *testing.T) {
	f := newFixture(t, Options{})
	f.cluster("s1", 1, 0, false)
	f.infraEnv("ie", "s1")
	f.sim.Faults().StageHang(f.key("h0"), StageInstalling)
	h0 := f.boot("h0", "ie")
	f.waitAgent(h0, hostKnown)
	f.patchAgent(h0, func(a *aiv1.Agent) { a.Spec.Approved = true })
	f.waitCluster("s1", clusterInstalling)
	h1 := f.boot("h1", "ie")
	f.eventually("the second host to freeze", func() bool { return f.sim.Frozen(f.key("h1")) })
	if f.agent(h1).UID != "" {
		t.Error("a host registered in a cluster that installs")
	}
	f.deleteInstall("s1")
	f.cluster("s1", 1, 0, false)
	f.sim.Reboot(f.key("h1"))
	f.eventually("the second host to freeze again", func() bool { return f.sim.Frozen(f.key("h1")) })
}

// deleteInstall deletes a ClusterDeployment and waits for both of its objects to go.
func (f *fixture) deleteInstall(name string) {
	f.t.Helper()
	(&driver{fixture: f}).deleteCluster(name)
}

// TestInputErrors is ASSISTED 3.2: what is missing shows in SpecSynced, and heals by itself.
func TestInputErrors(t *testing.T) {
	f := newFixture(t, Options{})
	aci := &hiveext.AgentClusterInstall{ObjectMeta: f.meta("orphan")}
	aci.Spec.ClusterDeploymentRef.Name = "orphan"
	aci.Spec.ProvisionRequirements.ControlPlaneAgents = 1
	f.create(aci)
	f.eventually("InputError", func() bool { return clusterReason(f.aci("orphan"), condSpecSynced) == "InputError" })
	if reason := clusterReason(f.aci("orphan"), condCompleted); reason != "NotAvailable" {
		t.Errorf("Completed has the reason %s without a ClusterDeployment", reason)
	}
	env := &aiv1.InfraEnv{ObjectMeta: f.meta("no-secret")}
	env.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "later"}
	f.create(env)
	f.eventually("ImageCreationError", func() bool { return f.imageReason("no-secret") == "ImageCreationError" })
	f.create(&corev1.Secret{ObjectMeta: f.meta("later"), Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")}})
	f.waitURL("no-secret")
}

// TestChurn checks that the service's rewrites change resource versions and nothing else.
func TestChurn(t *testing.T) {
	d := fastDurations()
	d.Churn = time.Second
	f := newFixture(t, Options{Durations: d})
	f.infraEnv("ie", "")
	name := f.boot("h0", "ie")
	f.waitAgent(name, hostKnownUnbound)
	before := f.agent(name)
	f.eventually("a rewrite", func() bool { return f.agent(name).ResourceVersion != before.ResourceVersion })
	after := f.agent(name)
	if after.Generation != before.Generation || after.Status.DebugInfo != before.Status.DebugInfo {
		t.Errorf("a rewrite changed more than the probe times: %v", after.Status)
	}
}
