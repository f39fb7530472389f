// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// FreeMachineNames returns n names <control plane>-<ordinal> that are not taken, lowest ordinals first. Names are no random: when the cache
// does not show a Machine yet, it is asked for again under the same name, and the API server refuses (CONTRACT CP-36).
func FreeMachineNames(controlPlane string, n int, taken sets.Set[string]) []string {
	var names []string
	for ordinal := 0; len(names) < n; ordinal++ {
		name := fmt.Sprintf("%s-%d", controlPlane, ordinal)
		if !taken.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// etcdMembers finds the number of members in what ClusterOperator etcd says: "3 members are available" or "2 of 3 members are available".
var etcdMembers = regexp.MustCompile(`(\d+) members are available`)

// EtcdMembers is the number of members of etcd that the message of a ClusterOperator tells; 0 when it tells none.
func EtcdMembers(message string) int {
	match := etcdMembers.FindStringSubmatch(message)
	if match == nil {
		return 0
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return 0 // It has too many digits to be a number of members.
	}
	return n
}

// NextMachine is the lowest number that is higher than those in the names of the control plane's Machines, <control plane>-<number>.
func NextMachine(controlPlane string, machines []string) int {
	next := 0
	for _, name := range machines {
		suffix, ok := strings.CutPrefix(name, controlPlane+"-")
		if number, err := strconv.Atoi(suffix); ok && err == nil && number >= next {
			next = number + 1
		}
	}
	return next
}
