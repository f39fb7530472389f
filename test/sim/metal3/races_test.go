// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"strings"

	"github.com/capi-openshift/agent-providers/test/sim/metal3/trace"
)

const (
	bootstrapReadyPath  = "status.deprecated.v1beta1.conditions[BootstrapReady]"
	dataSecretNamePath  = "spec.bootstrap.dataSecretName"
	associateResultPath = "status.conditions[AssociateBareMetalHost]"
)

// settleRaces orders the inputs as CAPM3 saw them. Core writes BootstrapReady and, 20 to 50 ms later, the name of the data Secret
// (M3-4). CAPM3's next decision shows which of the two it knew: they are moved before or behind it.
func settleRaces(recording *trace.Recording) {
	before, behind, moved := map[int][]int{}, map[int][]int{}, map[int]bool{}
	for i := range recording.Transitions {
		transition := &recording.Transitions[i]
		if transition.Kind() != "Machine" || transition.Set[bootstrapReadyPath] != "True" {
			continue
		}
		decision, secret := decisionAfter(recording, i), secretAfter(recording, i)
		if decision < 0 {
			continue
		}
		moved[i] = true
		if used, taken := recording.Transitions[decision].Set["spec.userData.name"]; taken && secret >= 0 {
			moved[secret] = true
			if used == recording.Transitions[secret].Set[dataSecretNamePath] {
				before[decision] = append(before[decision], secret)
			} else {
				behind[decision] = append(behind[decision], secret)
			}
		}
		before[decision] = append(before[decision], i)
	}
	var settled []trace.Transition
	take := func(indices []int) {
		for _, i := range indices {
			settled = append(settled, recording.Transitions[i])
		}
	}
	for i := range recording.Transitions {
		take(before[i])
		if !moved[i] {
			take([]int{i})
		}
		take(behind[i])
	}
	recording.Transitions = settled
}

// decisionAfter is the index of the transition by which CAPM3 shows that it knows of the bootstrap data, negative if there is none.
func decisionAfter(recording *trace.Recording, input int) int {
	machine := recording.Transitions[input].Name()
	for i := input + 1; i < len(recording.Transitions); i++ {
		transition := &recording.Transitions[i]
		result, _ := transition.Set[associateResultPath].(string)
		switch {
		case transition.Kind() == "BareMetalHost" && transition.Set["spec.consumerRef.name"] == machine,
			transition.Object == kindMachine+"/"+machine && strings.Contains(result, "/AssociateBareMetalHost"):
			return i
		}
	}
	return -1
}

func secretAfter(recording *trace.Recording, input int) int {
	for i := input + 1; i < len(recording.Transitions); i++ {
		transition := &recording.Transitions[i]
		if _, found := transition.Set[dataSecretNamePath]; found && transition.Object == recording.Transitions[input].Object {
			return i
		}
	}
	return -1
}
