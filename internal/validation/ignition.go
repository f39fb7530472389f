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
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ignitionVersions are those that every release of assisted-service reads. It knows no compatible ones: it parses as 3.2.0, and else as 3.1.0.
var ignitionVersions = []string{"3.1.0", "3.2.0"}

// ParseIgnition reads an ignition config with ignition's own parser. Its errors say where the mistake is and do not quote the config, which may
// hold secrets.
func ParseIgnition(text string) (ignitiontypes.Config, error) {
	var head struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return ignitiontypes.Config{}, fmt.Errorf("is no JSON: %w", err)
	}
	if !slices.Contains(ignitionVersions, head.Ignition.Version) {
		return ignitiontypes.Config{}, fmt.Errorf("must have ignition.version %s, which the Assisted Installer reads", strings.Join(ignitionVersions, " or "))
	}
	strict := json.NewDecoder(bytes.NewReader([]byte(text)))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&ignitiontypes.Config{}); err != nil {
		return ignitiontypes.Config{}, fmt.Errorf("is no ignition config: %w", err)
	}
	config, report, err := ignition.ParseCompatibleVersion([]byte(text))
	if err != nil {
		return ignitiontypes.Config{}, fmt.Errorf("is no valid ignition config: %s", strings.TrimSpace(report.String()))
	}
	return config, nil
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
