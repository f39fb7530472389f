// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"strings"
	"testing"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

func TestCheckInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		spec    aiv1.AgentSpec
		refusal string
	}{
		"nothing": {aiv1.AgentSpec{}, ""},
		"all": {aiv1.AgentSpec{IgnitionConfigOverrides: `{"ignition":{"version":"3.1.0"}}`,
			InstallerArgs: `["--append-karg","a=b","-n"]`}, ""},
		"a late ignition":  {aiv1.AgentSpec{IgnitionConfigOverrides: `{"ignition":{"version":"3.4.0"}}`}, "error parsing ignition"},
		"no list":          {aiv1.AgentSpec{InstallerArgs: `--append-karg a`}, "unmarshal"},
		"a forbidden flag": {aiv1.AgentSpec{InstallerArgs: `["--firstboot-args","a"]`}, "unexpected flag"},
		"a space":          {aiv1.AgentSpec{InstallerArgs: `["--append-karg","a b"]`}, "unexpected chars"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkInstallation(test.spec)
			if test.refusal == "" && err != nil || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("the answer is %v, want %q", err, test.refusal)
			}
		})
	}
}
