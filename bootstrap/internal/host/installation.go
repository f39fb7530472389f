// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/ignition"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// Flags of coreos-installer that assisted-service lets through.
const (
	appendKernelArgument = "--append-karg"
	deleteKernelArgument = "--delete-karg"
)

// installation is what spec.installation asks for in the terms of an Agent: the ignition, with what the provider adds, and the arguments of
// coreos-installer.
func installation(config *bootstrapv1.OpenshiftAssistedConfig) (ignitionConfig, installerArgs string, err error) {
	spec := config.Spec.Installation
	ignitionConfig, err = installedIgnition(spec.Ignition)
	if err != nil {
		return "", "", fmt.Errorf("spec.installation.ignition %w", err)
	}
	var args []string
	for _, argument := range spec.KernelArguments {
		args = append(args, appendKernelArgument, argument)
	}
	for _, argument := range spec.DeletedKernelArguments {
		args = append(args, deleteKernelArgument, argument)
	}
	if len(args) == 0 {
		return ignitionConfig, "", nil
	}
	encoded, err := json.Marshal(args)
	if err != nil {
		return "", "", fmt.Errorf("encode the kernel arguments of OpenshiftAssistedConfig %s: %w", config.Name, err)
	}
	return ignitionConfig, string(encoded), nil
}

func installedIgnition(own string) (string, error) {
	if own == "" {
		return ignition.Installed(nil)
	}
	parsed, err := validation.ParseIgnition(own)
	if err != nil {
		return "", err
	}
	return ignition.Installed(&parsed)
}
