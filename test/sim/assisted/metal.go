// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"bytes"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Metal is a data centre: the machines, and the clusters on their disks. It knows nothing of any management cluster. Simulators of several
// management clusters share one, so that a machine and its cluster run on while their BareMetalHosts are moved from one to the other.
type Metal struct {
	// mu also guards the backend of every simulator that shares the data centre.
	mu       sync.Mutex
	machines map[HostKey]*machine
	// clusters are the clusters that were installed here, without their Nodes; known counts the services that know of each.
	clusters map[types.NamespacedName]ClusterSpec
	known    map[types.NamespacedName]int
	// drives are the config drives of hosts that boot a disk image.
	drives map[HostKey][]byte
}

// NewMetal returns an empty data centre.
func NewMetal() *Metal {
	return &Metal{
		machines: map[HostKey]*machine{}, clusters: map[types.NamespacedName]ClusterSpec{}, known: map[types.NamespacedName]int{},
		drives: map[HostKey][]byte{},
	}
}

// WriteConfigDrive is what a provisioner does before a host boots its disk image for the first time. No data is no drive.
func (m *Metal) WriteConfigDrive(host HostKey, userData []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.drives, host)
	if len(userData) > 0 {
		m.drives[host] = bytes.Clone(userData)
	}
}

// PowerOff is what a BMC does to a machine. It runs again when its BareMetalHost is seen with power, also by somebody who never saw it
// without: a power cycle is short, and a simulator that is behind would leave a frozen agent frozen.
func (m *Metal) PowerOff(host HostKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if machine := m.machines[host]; machine != nil {
		machine.mode = machineOff
	}
}

// Deprovision is what a provisioner does to a machine that is freed: it cuts its power, and wipes its disk if it cleans it.
func (m *Metal) Deprovision(host HostKey, cleaned bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if machine := m.machines[host]; machine != nil {
		machine.hub.deprovision(machine, cleaned)
	}
}

// Boots counts how often each machine was powered on or rebooted.
func (m *Metal) Boots() map[HostKey]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	boots := map[HostKey]int{}
	for key, machine := range m.machines {
		boots[key] = machine.boots
	}
	return boots
}

// installed says whether a cluster is on the disk of any machine.
func (m *Metal) installed(cluster types.NamespacedName) bool {
	for _, machine := range m.machines {
		if machine.installed && machine.cluster == cluster {
			return true
		}
	}
	return false
}

// endIfGone ends a cluster that no service knows and that is on no disk any more. Deleting the record of a running cluster does not stop
// it.
func (b *backend) endIfGone(cluster types.NamespacedName) {
	if b.metal.known[cluster] == 0 && !b.metal.installed(cluster) {
		b.endCluster(cluster)
	}
}

func (b *backend) endCluster(cluster types.NamespacedName) {
	delete(b.metal.clusters, cluster)
	b.opts.Workload.Delete(cluster)
}
