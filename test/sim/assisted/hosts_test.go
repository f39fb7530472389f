// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"strings"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// provision makes a BareMetalHost say that it runs from an image; an empty URL says that it is available again.
func (f *fixture) provision(name, url string) {
	f.t.Helper()
	host := &bmov1alpha1.BareMetalHost{}
	must(f.t, f.client.Get(f.ctx, f.key(name), host))
	host.Status.Provisioning.State = bmov1alpha1.StateAvailable
	host.Status.Provisioning.Image = bmov1alpha1.Image{URL: url}
	host.Status.OperationalStatus = bmov1alpha1.OperationalStatusOK
	host.Status.PoweredOn = url != ""
	if url != "" {
		host.Status.Provisioning.State = bmov1alpha1.StateProvisioned
	}
	must(f.t, f.client.Status().Update(f.ctx, host))
}

func (f *fixture) bareMetalHost(name, mac string) {
	f.t.Helper()
	host := &bmov1alpha1.BareMetalHost{ObjectMeta: f.meta(name)}
	host.Spec.BootMACAddress, host.Spec.Online = mac, true
	f.create(host)
}

// TestHostsFollowBareMetalHosts boots a host through its BareMetalHost alone, with an ISO URL that was replaced since.
func TestHostsFollowBareMetalHosts(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	url := f.infraEnvNamed("ie").Status.ISODownloadURL
	f.sim.Faults().ISORotate(f.key("ie"))
	f.eventually("a new URL", func() bool { return f.infraEnvNamed("ie").Status.ISODownloadURL != url })
	f.bareMetalHost("metal-0", "52:54:00:AA:BB:01")
	f.provision("metal-0", url)
	name := md5UUID("52:54:00:aa:bb:01")
	f.waitAgent(name, hostKnownUnbound)
	agent := f.agent(name)
	if mac := agent.Status.Inventory.Interfaces[0].MacAddress; mac != strings.ToLower("52:54:00:AA:BB:01") {
		t.Errorf("the Agent reports MAC %s", mac)
	}
	if agent.Labels[infraEnvLabel] != "ie" || agent.OwnerReferences[0].Kind != "InfraEnv" {
		t.Errorf("the Agent does not belong to its InfraEnv: %v %v", agent.Labels, agent.OwnerReferences)
	}
	f.provision("metal-0", "")
	f.waitAgent(name, hostDisconnectedUnbound)
	f.provision("metal-0", url)
	f.waitAgent(name, hostKnownUnbound)
	must(t, f.client.Delete(f.ctx, f.infraEnvNamed("ie")))
	f.eventually("the Agent to go with its InfraEnv", func() bool { return f.agent(name).UID == "" })
}

// TestAnyOtherImageBootsNothing gives a host an image that is none of ours.
func TestAnyOtherImageBootsNothing(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	f.bareMetalHost("metal-0", "52:54:00:AA:BB:02")
	f.bareMetalHost("metal-1", "52:54:00:AA:BB:03")
	f.provision("metal-0", "http://elsewhere/byapikey/unknown/4.20/x86_64/minimal.iso")
	f.provision("metal-1", f.infraEnvNamed("ie").Status.ISODownloadURL)
	f.waitAgent(md5UUID("52:54:00:aa:bb:03"), hostKnownUnbound)
	if _, booted := f.sim.AgentOf(f.key("metal-0")); booted {
		t.Error("a host boots an image that is none of ours")
	}
}

// TestImageURL checks what changes an InfraEnv's ISO URL and what does not (ASSISTED 1.1).
func TestImageURL(t *testing.T) {
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	want := 1
	for _, test := range []struct {
		name    string
		change  func(*aiv1.InfraEnv)
		rotates bool
	}{
		{"labels", func(e *aiv1.InfraEnv) { e.Labels = map[string]string{"a": "b"} }, false},
		{"agent labels", func(e *aiv1.InfraEnv) { e.Spec.AgentLabels = map[string]string{"a": "b"} }, false},
		{"architecture", func(e *aiv1.InfraEnv) { e.Spec.CPUArchitecture = "aarch64" }, false},
		{"SSH key", func(e *aiv1.InfraEnv) { e.Spec.SSHAuthorizedKey = "ssh-ed25519 AAAA" }, true},
		{"SSH key emptied", func(e *aiv1.InfraEnv) { e.Spec.SSHAuthorizedKey = "" }, false},
		{"NTP", func(e *aiv1.InfraEnv) { e.Spec.AdditionalNTPSources = []string{"clock.test"} }, true},
		{"ignition", func(e *aiv1.InfraEnv) { e.Spec.IgnitionConfigOverride = `{"ignition":{"version":"3.1.0"}}` }, true},
		{"kernel argument", func(e *aiv1.InfraEnv) {
			e.Spec.KernelArguments = []aiv1.KernelArgument{{Operation: "append", Value: "x=y"}}
		}, true},
	} {
		env := f.infraEnvNamed("ie")
		old, before := env.Status.ISODownloadURL, env.DeepCopy()
		test.change(env)
		must(t, f.client.Patch(f.ctx, env, client.MergeFrom(before)))
		if test.rotates {
			want++
			f.eventually("another URL after a change of "+test.name, func() bool { return f.infraEnvNamed("ie").Status.ISODownloadURL != old })
		}
	}
	// Every change that rotates has been seen, and with it those before it.
	if got := f.tokens(); got != want {
		t.Errorf("the InfraEnv has had %d URLs, want %d", got, want)
	}
}

// tokens counts the ISO URLs that the service has given out.
func (f *fixture) tokens() int {
	b := f.sim.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tokens)
}

// TestWhatAnEarlierLifeLeft: a host that was freed without being cleaned boots the medium once, when it is provisioned. After a power cycle
// it boots the system that is still on its disk, until another one is written over it (METAL3 M3-69).
func TestWhatAnEarlierLifeLeft(t *testing.T) {
	for name, test := range map[string]struct {
		mode  bmov1alpha1.AutomatedCleaningMode
		again machineMode
	}{
		"cleaned":     {mode: bmov1alpha1.CleaningModeMetadata, again: machineBooting},
		"not cleaned": {mode: bmov1alpha1.CleaningModeDisabled, again: machineLeftover},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(Options{Durations: fastDurations()}).backend
			host := &bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"}}
			host.Spec.AutomatedCleaningMode = test.mode
			host.Status.Provisioning.State = bmov1alpha1.StateDeprovisioning
			m := &machine{key: client.ObjectKeyFromObject(host), hub: b, mode: machineDisk, installed: true}
			b.machines[m.key] = m
			b.observe(host)
			if m.mode != machineDisk || !m.installed {
				t.Error("the host stopped before its BMC was asked")
			}
			b.metal.Deprovision(m.key, test.mode != bmov1alpha1.CleaningModeDisabled)
			host.Status.Provisioning.State = bmov1alpha1.StateAvailable
			b.observe(host)
			if m.mode != machineOff || m.installed {
				t.Error("a host that was freed runs")
			}
			for range 2 {
				b.powerOn(m)
				if m.mode != machineBooting {
					t.Error("a host that is provisioned does not boot the medium")
				}
				b.powerOn(m)
				if m.mode != test.again {
					t.Errorf("after a power cycle its mode is %d, want %d", m.mode, test.again)
				}
				b.observe(host)
			}
			m.installed, m.leftover = true, false // Its disk is written.
			b.powerOn(m)
			if m.mode != machineRebooting {
				t.Error("an installed host does not boot its disk")
			}
		})
	}
}
