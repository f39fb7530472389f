// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	ignition31 "github.com/coreos/ignition/v2/config/v3_1"
	ignition32 "github.com/coreos/ignition/v2/config/v3_2"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// installerFlags are the flags of coreos-installer that the service lets through, installerValue what their values are made of.
var (
	installerFlags = []string{
		"--append-karg", "--delete-karg", "-n", "--copy-network", "--network-dir", "--save-partlabel", "--save-partindex", "--image-url",
		"--image-file",
	}
	installerValue = regexp.MustCompile(`^[A-Za-z0-9@!#$%*()_+-=//.,";':{}\[\]]+$`)
)

// imageTypes are those of the InfraEnv; empty is the service's default.
var imageTypes = []string{"", "minimal-iso", "full-iso", "disconnected-iso"}

// parseIgnition reads what the service reads: version 3.2.0, and else 3.1.0.
func parseIgnition(text string) error {
	if _, _, err := ignition32.Parse([]byte(text)); err == nil {
		return nil
	}
	if _, _, err := ignition31.Parse([]byte(text)); err != nil {
		return userError("error parsing ignition: %v", err)
	}
	return nil
}

// checkInstallation refuses what cannot be handed to the installer of a host.
func checkInstallation(spec aiv1.AgentSpec) error {
	if spec.IgnitionConfigOverrides != "" {
		if err := parseIgnition(spec.IgnitionConfigOverrides); err != nil {
			return err
		}
	}
	if spec.InstallerArgs == "" {
		return nil
	}
	var args []string
	if err := json.Unmarshal([]byte(spec.InstallerArgs), &args); err != nil {
		return userError("Fail to unmarshal installer args: %v", err)
	}
	for _, arg := range args {
		switch {
		case strings.HasPrefix(arg, "-"):
			if !slices.Contains(installerFlags, arg) {
				return userError("found unexpected flag %s for installer - allowed flags are %v", arg, installerFlags)
			}
		case !installerValue.MatchString(arg):
			return userError("found unexpected chars in value %s for installer", arg)
		}
	}
	return nil
}
