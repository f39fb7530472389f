// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// faultState is what is wrong at the moment. It is guarded by the backend's lock.
type faultState struct {
	hosts     map[HostKey]*hostFaults
	downUntil time.Time
	away      bool
	// Of clusters, by their AgentClusterInstall: failing checks, why manifests cannot be made, why the operators fail to come up, whether they
	// do not come up for now, how late the kubeconfig is.
	clusters        map[types.NamespacedName]map[string]string
	manifests       map[types.NamespacedName]string
	operators       map[types.NamespacedName]string
	hanging         map[types.NamespacedName]bool
	kubeconfigDelay map[types.NamespacedName]time.Duration
}

// hostFaults are the faults of one machine.
type hostFaults struct {
	neverBoots     bool
	failedBoots    int
	wrongBootOrder bool
	hangStage      string
	failStage      string
	failMessage    string
	prepareFails   int
	validations    map[string]string
}

func newFaultState() faultState {
	return faultState{
		hosts: map[HostKey]*hostFaults{}, clusters: map[types.NamespacedName]map[string]string{},
		manifests: map[types.NamespacedName]string{}, operators: map[types.NamespacedName]string{},
		hanging: map[types.NamespacedName]bool{}, kubeconfigDelay: map[types.NamespacedName]time.Duration{},
	}
}

// of returns the faults of a machine, to be changed in place.
func (f *faultState) of(key HostKey) *hostFaults {
	if f.hosts[key] == nil {
		f.hosts[key] = &hostFaults{validations: map[string]string{}}
	}
	return f.hosts[key]
}

// hostFaults returns the faults of the machine that runs as a host.
func (b *backend) hostFaults(h *host) *hostFaults {
	if m := b.running[h.id]; m != nil {
		return b.faults.of(m.key)
	}
	return &hostFaults{}
}

func (f *faultState) clusterValidations(aci types.NamespacedName) []string {
	return sortedValues(f.clusters[aci])
}

func (f *hostFaults) validationMessages() []string { return sortedValues(f.validations) }

// takeStageFailure returns the failure planned for a stage, once.
func (f *hostFaults) takeStageFailure(stage string) (message string, failed bool) {
	if f.failStage == "" || f.failStage != stage {
		return "", false
	}
	f.failStage = ""
	return f.failMessage, true
}

// takePrepareFailure says whether this preparation fails, and counts it.
func (f *hostFaults) takePrepareFailure() bool {
	if f.prepareFails == 0 {
		return false
	}
	f.prepareFails--
	return true
}

// takeFailedBoot says whether this boot of the discovery image fails, and counts it.
func (f *hostFaults) takeFailedBoot() bool {
	if f.failedBoots == 0 {
		return false
	}
	f.failedBoots--
	return true
}

func sortedValues(m map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[key])
	}
	return out
}
