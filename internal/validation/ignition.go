// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	ignitiontypes "github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/coreos/vcontext/report"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// ignitionLimits are those of an ignition config of a user. Each value takes up to 20 KiB while ignition checks it.
var ignitionLimits = untrusted.Limits{Bytes: 256 << 10, Values: 2000}

// maxMistakes is the number of mistakes that are shown of those that ignition finds.
const maxMistakes = 5

// ignitionVersions are those that every release of assisted-service reads. It knows no compatible ones: it parses as 3.2.0, and else as
// 3.1.0.
var ignitionVersions = []string{"3.1.0", "3.2.0"}

// ParseIgnition reads an ignition config with ignition's own parser. Its errors say where the mistake is and do not quote the config, which
// may hold secrets.
func ParseIgnition(text string) (ignitiontypes.Config, error) {
	if err := ignitionLimits.JSON([]byte(text)); err != nil {
		return ignitiontypes.Config{}, fmt.Errorf("is too large: %w", err)
	}
	var head struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return ignitiontypes.Config{}, fmt.Errorf("is no JSON: %w", err)
	}
	if !slices.Contains(ignitionVersions, head.Ignition.Version) {
		return ignitiontypes.Config{}, fmt.Errorf(
			"must have ignition.version %s, which the Assisted Installer reads", strings.Join(ignitionVersions, " or "),
		)
	}
	strict := json.NewDecoder(bytes.NewReader([]byte(text)))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&ignitiontypes.Config{}); err != nil {
		return ignitiontypes.Config{}, fmt.Errorf("is no ignition config: %w", err)
	}
	config, mistakes, err := ignition.ParseCompatibleVersion([]byte(text))
	if err != nil {
		return ignitiontypes.Config{}, fmt.Errorf("is no valid ignition config: %s", firstMistakes(mistakes))
	}
	return config, nil
}

// firstMistakes is the beginning of a report. Its own String takes the square of its length in memory.
func firstMistakes(all report.Report) string {
	lines := make([]string, 0, maxMistakes+1)
	for _, mistake := range all.Entries[:min(len(all.Entries), maxMistakes)] {
		lines = append(lines, mistake.String())
	}
	if more := len(all.Entries) - maxMistakes; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

func ignitionConfig(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	if _, err := ParseIgnition(text); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}
