// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// machineEvents records which Machines events are about.
type machineEvents struct {
	events.EventRecorder
	machines []string
}

func (r *machineEvents) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	if machine, ok := related.(*clusterv1.Machine); ok {
		r.machines = append(r.machines, reason+" "+machine.Name)
	}
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// TestEventsOfMachinesAreApart: a recorder takes events of one object, reason and action for one that is repeated, unless they are about
// different objects.
func TestEventsOfMachinesAreApart(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 5, 0)
	recorder := &machineEvents{EventRecorder: w.events}
	w.r.Recorder = recorder
	w.run(nil, func() bool { return len(w.machines()) == 5 })
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) })
	_ = w.try() // Machines without finalizers are gone before their conditions are set.
	g.Expect(recorder.machines).To(ConsistOf("MachineDeleted cp-3", "MachineDeleted cp-4"))
	g.Expect(w.events.Events).To(Receive(ContainSubstring("Created Machines cp-0, cp-1, cp-2, cp-3, cp-4")), "a pass tells of all at once")
}
