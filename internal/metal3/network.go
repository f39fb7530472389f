// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"fmt"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Candidates returns the hosts of the list that the Metal3Machine's hostSelector matches: the one that it will consume is among them
// (METAL3 M3-10). Hosts that are managed by somebody else, or are going, never are.
func Candidates(machine *unstructured.Unstructured, hosts []bmov1alpha1.BareMetalHost) ([]bmov1alpha1.BareMetalHost, error) {
	selector, err := hostSelector(machine)
	if err != nil {
		return nil, err
	}
	var candidates []bmov1alpha1.BareMetalHost
	for i := range hosts {
		host := &hosts[i]
		if host.DeletionTimestamp.IsZero() && !host.Spec.ExternallyProvisioned && selector.Matches(labels.Set(host.Labels)) {
			candidates = append(candidates, *host)
		}
	}
	return candidates, nil
}

// Free reports whether the host may still be given to a Metal3Machine.
func Free(host *bmov1alpha1.BareMetalHost) bool {
	return host.Spec.ConsumerRef == nil || host.Spec.ConsumerRef.Kind != MachineKind
}

// hostSelector returns spec.hostSelector; without one every host matches. Operators are those of labels.Requirement, in any case, as Metal3
// reads them.
func hostSelector(machine *unstructured.Unstructured) (labels.Selector, error) {
	selector := labels.NewSelector()
	matchLabels, _, err := unstructured.NestedStringMap(machine.Object, "spec", "hostSelector", "matchLabels")
	if err != nil {
		return nil, fmt.Errorf("spec.hostSelector.matchLabels of %s %s: %w", machine.GetKind(), machine.GetName(), err)
	}
	selector = selector.Add(requirementsOf(matchLabels)...)
	expressions, _, err := unstructured.NestedSlice(machine.Object, "spec", "hostSelector", "matchExpressions")
	if err != nil {
		return nil, fmt.Errorf("spec.hostSelector.matchExpressions of %s %s: %w", machine.GetKind(), machine.GetName(), err)
	}
	for i, item := range expressions {
		expression, _ := item.(map[string]any)
		key, _, _ := unstructured.NestedString(expression, "key")
		operator, _, _ := unstructured.NestedString(expression, "operator")
		values, _, _ := unstructured.NestedStringSlice(expression, "values")
		requirement, err := labels.NewRequirement(key, selection.Operator(strings.ToLower(operator)), values)
		if err != nil {
			return nil, fmt.Errorf("spec.hostSelector.matchExpressions[%d] of %s %s: %w", i, machine.GetKind(), machine.GetName(), err)
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}

func requirementsOf(matchLabels map[string]string) labels.Requirements {
	requirements, _ := labels.SelectorFromSet(matchLabels).Requirements()
	return requirements
}

// NetworkDataSecret returns the name of the Secret with the host's network data for the time before it is installed; "" when there is none.
// preprovisioningNetworkDataName is for that time, and networkData, which templates of Metal3 write for the installed system, stands in.
// The Secret has to be beside the host.
func NetworkDataSecret(host *bmov1alpha1.BareMetalHost) (string, error) {
	if host.Spec.PreprovisioningNetworkDataName != "" {
		return host.Spec.PreprovisioningNetworkDataName, nil
	}
	ref := host.Spec.NetworkData
	if ref == nil || ref.Name == "" {
		return "", nil
	}
	if ref.Namespace != "" && ref.Namespace != host.Namespace {
		return "", fmt.Errorf(
			"spec.networkData of BareMetalHost %s names a Secret in namespace %s, must be in that of the host", host.Name, ref.Namespace,
		)
	}
	return ref.Name, nil
}

// NICs returns the hardware addresses of the host's network interfaces by name, as inspection found them.
func NICs(host *bmov1alpha1.BareMetalHost) map[string]string {
	nics := map[string]string{}
	if host.Status.HardwareDetails == nil {
		return nics
	}
	for _, nic := range host.Status.HardwareDetails.NIC {
		if _, known := nics[nic.Name]; !known && nic.MAC != "" {
			nics[nic.Name] = strings.ToLower(nic.MAC)
		}
	}
	return nics
}
