// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

const (
	defaultCPUs   = 16
	defaultMemory = 64 << 30

	// defaultArchitecture is that of images of InfraEnvs that do not name one.
	defaultArchitecture = "x86_64"
)

// fillStatus mirrors the backend's host in the Agent.
func (s *Simulator) fillStatus(agent *aiv1.Agent, view hostView, specErr error) {
	status := &agent.Status
	status.DebugInfo.State, status.DebugInfo.StateInfo = view.state, view.info
	status.DebugInfo.EventsURL = s.backend.opts.ImageBaseURL + "/api/assisted-install/v2/events?host_id=" + view.id
	status.Kind, status.Role, status.Bootstrap = view.kind, view.role, view.bootstrap
	frozen := slices.Clone(status.Conditions)
	for _, c := range append(agentConditions(view), agentSynced(specErr)) {
		if view.frozenProgress && c.kind == condInstalled && len(frozen) > 0 {
			continue
		}
		s.setAgentCondition(&status.Conditions, c)
	}
	if !view.frozenProgress {
		s.fillProgress(status, view)
	}
	s.fillInventory(agent, view)
	s.fillDeprovision(status, view)
}

func (s *Simulator) fillProgress(status *aiv1.AgentStatus, view hostView) {
	if view.stage == "" {
		status.Progress = aiv1.Progress{}
		return
	}
	progress := aiv1.Progress{
		CurrentStage: view.stage, ProgressStages: view.stages, InstallationPercentage: view.percent,
		StageStartTime: status.Progress.StageStartTime, StageUpdateTime: status.Progress.StageUpdateTime,
	}
	if status.Progress.CurrentStage != view.stage {
		now := ptr.To(metav1.NewTime(s.backend.opts.Clock.Now()))
		progress.StageStartTime, progress.StageUpdateTime = now, now
	}
	status.Progress = progress
}

// fillInventory writes the hardware report. It stays when the backend has dropped its own (ASSISTED 1.2).
func (s *Simulator) fillInventory(agent *aiv1.Agent, view hostView) {
	status := &agent.Status
	status.ValidationsInfo = validationsInfo(view)
	if view.diskGone {
		status.InstallationDiskID = ""
	}
	if view.inventory == nil {
		return
	}
	status.Inventory = inventoryOf(view.inventory)
	status.NTPSources = []aiv1.NTPSource{{SourceName: "clock.test", SourceState: "synced"}}
	status.InstallationDiskID = view.disk
	if !view.approvedCSRs.IsZero() && status.CSRStatus == nil {
		at := metav1.NewTime(view.approvedCSRs)
		status.CSRStatus = &aiv1.CSRStatus{
			ApprovedCSRs: []aiv1.ApprovedCSR{
				{Name: "csr-c-" + agent.Spec.Hostname, Type: "client", ApprovedAt: at},
				{Name: "csr-s-" + agent.Spec.Hostname, Type: "serving", ApprovedAt: at},
			},
			LastApprovalAttempt: &at,
		}
	}
}

func (s *Simulator) fillDeprovision(status *aiv1.AgentStatus, view hostView) {
	status.DeprovisionInfo = nil
	if info := view.deprovision; info != nil {
		status.DeprovisionInfo = &aiv1.DeprovisionInfo{
			ClusterName: info.cluster.Name, ClusterNamespace: info.cluster.Namespace, NodeName: info.node, Message: info.message,
		}
	}
}

func validationsInfo(view hostView) map[string][]aiv1.ValidationResult {
	if !view.validated {
		return nil
	}
	hardware := []aiv1.ValidationResult{{ID: "has-inventory", Status: "success", Message: "Valid inventory exists for the host"}}
	if view.inventory == nil { // A bind and every registration drop it; status.inventory stays (ASSISTED 8.1).
		hardware = []aiv1.ValidationResult{{ID: "has-inventory", Status: "failure", Message: "Inventory has not been received for the host"}}
	}
	network := []aiv1.ValidationResult{{ID: "connected", Status: "success", Message: "Host is connected"}}
	for _, message := range view.failing {
		network = append(network, aiv1.ValidationResult{ID: validationID(message), Status: "failure", Message: message})
	}
	return map[string][]aiv1.ValidationResult{"hardware": hardware, "network": network}
}

// validationIDs are the service's identifiers of the checks that the simulated hosts fail, by what their messages have.
var validationIDs = []struct{ text, id string }{
	{"NTP server", "ntp-synced"},
	{"is not unique in cluster", "hostname-unique"},
	{"connectivity to the majority", "belongs-to-majority-group"},
	{"MTU report", "mtu-valid"},
	{"Ignition is not yet available", "ignition-downloadable"},
}

// validationID is the identifier of the check with a message; one that is made out of the message for checks that are not listed.
func validationID(message string) string {
	for _, check := range validationIDs {
		if strings.Contains(message, check.text) {
			return check.id
		}
	}
	words := strings.Fields(strings.ToLower(message))
	return strings.Join(words[:min(4, len(words))], "-")
}

// inventoryOf is the hardware report in the form of an Agent's status.
func inventoryOf(hw *HostHardware) aiv1.Inventory {
	cpus, memory := hw.CPUs, hw.MemoryBytes
	if cpus == 0 {
		cpus = defaultCPUs
	}
	if memory == 0 {
		memory = defaultMemory
	}
	inventory := aiv1.Inventory{
		Hostname: hw.Hostname,
		CPU:      aiv1.CPU{Architecture: hw.architecture(), Count: cpus},
		Memory:   aiv1.Memory{PhysicalBytes: memory, UsableBytes: memory},
		Disks:    inventoryDisks(hw),
		SystemVendor: aiv1.SystemVendor{
			Manufacturer: hw.Manufacturer, ProductName: hw.ProductName, SerialNumber: hw.Serial,
		},
	}
	for _, nic := range hw.NICs {
		report := aiv1.Interface{
			Name: nic.Name, MacAddress: strings.ToLower(nic.MAC), HasCarrier: true, Flags: []string{"up", "broadcast", "multicast"},
			IPV4Addresses: []string{}, IPV6Addresses: []string{},
		}
		for _, ip := range nic.IPs {
			if isIPv6(ip) {
				report.IPV6Addresses = append(report.IPV6Addresses, ip)
			} else {
				report.IPV4Addresses = append(report.IPV4Addresses, ip)
			}
		}
		inventory.Interfaces = append(inventory.Interfaces, report)
	}
	return inventory
}

// architecture is what the machine has, or what an agent reports that has booted an image without one.
func (hw *HostHardware) architecture() string { return cmp.Or(hw.Architecture, defaultArchitecture) }

// inventoryLabels are the labels that the service derives from the hardware.
func inventoryLabels(hw *HostHardware) map[string]string {
	return map[string]string{
		inventoryPrefix + "storage-hasnonrotationaldisk": "true",
		inventoryPrefix + "cpu-architecture":             hw.architecture(),
		inventoryPrefix + "cpu-virtenabled":              "true",
		inventoryPrefix + "host-isvirtual":               "false",
		inventoryPrefix + "host-manufacturer":            labelValue(hw.Manufacturer),
		inventoryPrefix + "host-productname":             labelValue(hw.ProductName),
	}
}

// labelValue makes any text fit a label.
func labelValue(text string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return -1
	}, text)
	return strings.Trim(kept[:min(63, len(kept))], "-.")
}
