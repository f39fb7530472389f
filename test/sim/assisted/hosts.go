// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"fmt"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func (s *Simulator) setupHosts(mgr ctrl.Manager) error {
	if s.backend.opts.NoHostsFromAPI {
		return nil
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("assisted-hosts").
		For(&bmov1alpha1.BareMetalHost{}).
		WithOptions(s.controllerOptions()).
		Complete(reconcile.Func(s.reconcileHost))
}

// reconcileHost powers a machine as its BareMetalHost says.
func (s *Simulator) reconcileHost(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	host := &bmov1alpha1.BareMetalHost{}
	if err := s.client.Get(ctx, req.NamespacedName, host); err != nil {
		if client.IgnoreNotFound(err) == nil {
			s.backend.vanish(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s.backend.observe(host)
	return ctrl.Result{}, nil
}

// vanish is the end of a BareMetalHost. One that was deprovisioned is off by then; an installed machine whose BareMetalHost was moved away
// does not notice.
func (b *backend) vanish(key HostKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[key]; m != nil && m.hub == b && !m.installed {
		b.cutPower(m)
	}
}

// observe compares a BareMetalHost with its machine. A host that left the provisioned state has lost its disk's content, if it was cleaned;
// one that enters it boots what its image says.
func (b *backend) observe(host *bmov1alpha1.BareMetalHost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := client.ObjectKeyFromObject(host)
	m := b.machines[key]
	url, provisioned := bootImage(host)
	env, known := b.imageOwner(url)
	if !known {
		env, known = b.ignitionOwner(b.metal.drives[key])
	}
	if m != nil && m.hub != b {
		// Another management cluster has it, until this one's baremetal-operator takes over what it has provisioned or provisions it anew.
		if _, paused := host.Annotations[bmov1alpha1.PausedAnnotation]; !provisioned || paused {
			return
		}
		m.hub = b
	}
	if leaving(host) {
		return // The machine runs until its BMC has told it otherwise: Metal's Deprovision and PowerOff.
	}
	// What is on the disk runs, also when the InfraEnv of the image that put it there is gone or was another service's.
	if !provisioned || !known && (m == nil || !m.installed) {
		b.deprovision(m, host.Spec.AutomatedCleaningMode != bmov1alpha1.CleaningModeDisabled)
		return
	}
	if m == nil {
		m = &machine{key: key, hub: b}
		b.machines[key] = m
	}
	if known {
		m.infraEnv = env
	}
	b.observePower(m, host)
}

// observePower starts and stops the machine of a provisioned host.
func (b *backend) observePower(m *machine, host *bmov1alpha1.BareMetalHost) {
	switch {
	case !host.Status.PoweredOn:
		b.cutPower(m)
	case m.mode == machineOff:
		m.hardware = b.opts.Hardware(host)
		b.powerOn(m)
	}
}

// leaving says whether a BareMetalHost is being freed. With a BMC that does not answer that may take for ever, and fail.
func leaving(host *bmov1alpha1.BareMetalHost) bool {
	switch host.Status.Provisioning.State {
	case bmov1alpha1.StateDeprovisioning, bmov1alpha1.StatePoweringOffBeforeDelete, bmov1alpha1.StateDeleting:
		return true
	}
	return false
}

// bootImage returns the URL that a provisioned host has booted, or is booting.
func bootImage(host *bmov1alpha1.BareMetalHost) (url string, provisioned bool) {
	switch host.Status.Provisioning.State {
	case bmov1alpha1.StateProvisioned:
	case bmov1alpha1.StateProvisioning:
		if !host.Status.PoweredOn {
			return "", false
		}
	default:
		return "", false
	}
	if image := host.Status.Provisioning.Image.URL; image != "" {
		return image, true
	}
	if host.Spec.Image != nil {
		return host.Spec.Image.URL, true
	}
	return "", false
}

// imageOwner finds the InfraEnv of an ISO URL by its token; every token that it ever had counts.
func (b *backend) imageOwner(url string) (types.NamespacedName, bool) {
	_, rest, found := strings.Cut(url, "/byapikey/")
	if !found {
		return types.NamespacedName{}, false
	}
	token, _, _ := strings.Cut(rest, "/")
	env, ok := b.tokens[token]
	return env, ok
}

// ignitionOwner finds the InfraEnv of a discovery ignition by the token that its agent registers with.
func (b *backend) ignitionOwner(ignition []byte) (types.NamespacedName, bool) {
	match := agentToken.FindSubmatch(ignition)
	if match == nil {
		return types.NamespacedName{}, false
	}
	env, ok := b.tokens[string(match[1])]
	return env, ok
}

// cutPower stops whatever runs on a machine. What is on its disk stays.
func (b *backend) cutPower(m *machine) {
	if m != nil {
		m.mode = machineOff
	}
}

// deprovision stops a machine. Its disk is wiped if it is cleaned; else what is on it is nobody's any more, and is there.
func (b *backend) deprovision(m *machine, cleaned bool) {
	if m == nil {
		return
	}
	b.cutPower(m)
	installed := m.installed
	m.installed, m.started, m.medium = false, false, true
	m.leftover = !cleaned && (m.leftover || installed)
	if installed {
		b.endIfGone(m.cluster)
	}
}

// HardwareOf derives a machine's hardware from its BareMetalHost: the inspected hardware, and the boot MAC where nothing
// was inspected.
func HardwareOf(host *bmov1alpha1.BareMetalHost) HostHardware {
	hw := HostHardware{Hostname: host.Name}
	if details := host.Status.HardwareDetails; details != nil {
		hw.Serial = details.SystemVendor.SerialNumber
		hw.Manufacturer, hw.ProductName = details.SystemVendor.Manufacturer, details.SystemVendor.ProductName
		for _, nic := range details.NIC {
			hw.NICs = append(hw.NICs, NIC{Name: nic.Name, MAC: nic.MAC, IPs: withPrefix(nic.IP)})
		}
		for _, disk := range details.Storage {
			hw.Disks = append(hw.Disks, diskOf(disk))
		}
	}
	if len(hw.NICs) == 0 && host.Spec.BootMACAddress != "" {
		hw.NICs = []NIC{{Name: "eno1", MAC: host.Spec.BootMACAddress}}
	}
	return hw
}

func withPrefix(ip string) []string {
	switch {
	case ip == "":
		return nil
	case strings.Contains(ip, "/"):
		return []string{ip}
	case isIPv6(ip):
		return []string{ip + "/64"}
	}
	return []string{ip + "/24"}
}

// isIPv6 says whether an address, with or without prefix length, is one of IPv6.
func isIPv6(ip string) bool { return strings.Contains(ip, ":") }

// BootStray boots a machine that no BareMetalHost describes from an InfraEnv's image. It fails when the InfraEnv is not
// known to the service.
func (s *Simulator) BootStray(infraEnv types.NamespacedName, hardware HostHardware) (HostKey, error) {
	key := HostKey{Namespace: infraEnv.Namespace, Name: "stray-" + hostID(hardware)}
	return key, s.BootHost(key, infraEnv, hardware)
}

// BootHost boots a machine from an InfraEnv's image, whatever it did before; its disk counts as empty.
func (s *Simulator) BootHost(key HostKey, infraEnv types.NamespacedName, hardware HostHardware) error {
	b := s.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.infraEnvs[infraEnv] == nil {
		return fmt.Errorf("cannot boot host %s: InfraEnv %s has no image yet, wait for its isoDownloadURL", key, infraEnv)
	}
	b.machines[key] = &machine{key: key, hub: b, infraEnv: infraEnv, hardware: hardware}
	b.powerOn(b.machines[key])
	return nil
}

// Reboot restarts a machine: from its disk when there is a system on it, else from the discovery image. It thaws a frozen agent.
func (s *Simulator) Reboot(key HostKey) {
	s.changeMachine(key, func(b *backend, m *machine) { b.powerOn(m) })
}

// RebootFromImage restarts a machine from the discovery image once although its disk is installed. The disk stays as it is.
func (s *Simulator) RebootFromImage(key HostKey) {
	s.changeMachine(key, func(b *backend, m *machine) {
		m.boots++
		m.mode, m.due = machineBooting, b.now().Add(b.jitter(b.opts.Durations.Discovery))
	})
}

// PowerOff stops a machine: its heartbeats stop, and its Node goes NotReady.
func (s *Simulator) PowerOff(key HostKey) {
	s.changeMachine(key, func(b *backend, m *machine) { b.cutPower(m) })
}

func (s *Simulator) changeMachine(key HostKey, change func(*backend, *machine)) {
	b := s.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[key]; m != nil {
		change(b, m)
	}
}

// AgentOf returns the namespace and name of the Agent that a machine registers, or registered, as.
func (s *Simulator) AgentOf(key HostKey) (types.NamespacedName, bool) {
	b := s.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.machines[key]
	if m == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: m.infraEnv.Namespace, Name: hostID(m.hardware)}, true
}

// Frozen says whether a machine's agent has given up because the service refused it (ASSISTED fact 1). Only a reboot
// revives it.
func (s *Simulator) Frozen(key HostKey) bool {
	b := s.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.machines[key]
	return m != nil && m.mode == machineFrozen
}
