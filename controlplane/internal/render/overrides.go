// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// overridesLimits leave room for the other annotations of an object, which may have 256 KiB together.
var overridesLimits = untrusted.Limits{Bytes: 64 << 10, Values: 10_000}

// ownedKeys are the keys of an install-config that fields are for, and what to use instead. assisted-service reads keys without regard to
// case.
var ownedKeys = map[string]string{
	"apiversion": "assisted-service sets it", "metadata": "use install.clusterName",
	"basedomain": "use install.baseDomain", "pullsecret": "use install.pullSecretRef",
	"sshkey": "use install.sshAuthorizedKey", "networking": "use install.networking",
	"platform": "use install.platform, apiVIPs, ingressVIPs, loadBalancer and external",
	"proxy":    "use install.proxy", "capabilities": "use install.capabilities",
	"featureset": "use install.featureSet", "fips": "use install.fips",
	"cpupartitioningmode":   "use install.cpuPartitioning",
	"additionaltrustbundle": "use openshiftAssistedConfigSpec.additionalTrustBundle",
	"imagecontentsources":   "use install.mirrorRegistryRef", "imagedigestsources": "use install.mirrorRegistryRef",
	"bootstrapinplace":  "assisted-service sets it",
	"compute":           "use install.hyperthreading; the number of workers is that of their Machines",
	"arbiter":           "use install.twoNode; the number of arbiters is that of their Machines",
	"controlplane.name": "assisted-service sets it", "controlplane.replicas": "use spec.replicas",
	"controlplane.platform":       "use install.platform",
	"controlplane.fencing":        "use install.twoNode and the annotations of BareMetalHosts",
	"controlplane.architecture":   "use openshiftAssistedConfigSpec.cpuArchitecture",
	"controlplane.hyperthreading": "use install.hyperthreading",
}

// OverrideProblems checks spec.install.configOverrides.
func OverrideProblems(install controlplanev1.InstallSpec, path *field.Path) field.ErrorList {
	raw := install.ConfigOverrides.Raw
	if len(raw) == 0 {
		return nil
	}
	if err := overridesLimits.JSON(raw); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	overrides, err := decodeObject(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be an object: "+err.Error())}
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(overrides)) {
		errs = append(errs, ownedProblem(strings.ToLower(key), path.Child(key))...)
		nested, ok := overrides[key].(map[string]any)
		if !ok {
			continue
		}
		for _, child := range slices.Sorted(maps.Keys(nested)) {
			errs = append(errs, ownedProblem(strings.ToLower(key+"."+child), path.Child(key, child))...)
		}
	}
	return errs
}

func ownedProblem(key string, path *field.Path) field.ErrorList {
	if use, owned := ownedKeys[key]; owned {
		return field.ErrorList{field.Forbidden(path, "must not be overridden: "+use)}
	}
	return nil
}

// decodeObject keeps numbers as they are written.
func decodeObject(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	return object, nil
}

// InstallConfigOverrides is the value of assisted-service's override annotation; empty when there is nothing to override. Keys are in
// alphabetical order.
func InstallConfigOverrides(spec controlplanev1.OpenshiftAssistedControlPlaneSpec) (string, error) {
	path := field.NewPath("spec", "install")
	errs := OverrideProblems(spec.Install, path.Child("configOverrides"))
	capabilities, problems := Capabilities(spec, path)
	if errs = append(errs, problems...); len(errs) > 0 {
		return "", fmt.Errorf("make the install-config overrides: %w", errs.ToAggregate())
	}
	overrides := map[string]any{}
	if raw := spec.Install.ConfigOverrides.Raw; len(raw) > 0 {
		user, err := decodeObject(raw)
		if err != nil {
			return "", err
		}
		maps.Copy(overrides, user)
	}
	if capabilities != nil {
		overrides["capabilities"] = capabilities
	}
	if spec.Install.FeatureSet != "" {
		overrides["featureSet"] = spec.Install.FeatureSet
	}
	if ptr.Deref(spec.Install.FIPS, false) {
		overrides["fips"] = true
	}
	if spec.Install.CPUPartitioning != "" {
		overrides["cpuPartitioningMode"] = spec.Install.CPUPartitioning
	}
	if len(overrides) == 0 {
		return "", nil
	}
	value, err := json.Marshal(overrides)
	if err != nil {
		return "", fmt.Errorf("encode the install-config overrides: %w", err)
	}
	return string(value), nil
}

// addInstallAnnotations sets what assisted-service reads from annotations of an AgentClusterInstall.
func addInstallAnnotations(annotations map[string]string, spec controlplanev1.OpenshiftAssistedControlPlaneSpec) error {
	overrides, err := InstallConfigOverrides(spec)
	if err != nil {
		return err
	}
	ignored := spec.Install.IgnoredValidations
	values := map[string]string{
		assisted.InstallConfigOverridesAnnotation: overrides, assisted.IgnoredClusterValidationsAnnotation: listJSON(ignored.Cluster),
		assisted.IgnoredHostValidationsAnnotation: listJSON(ignored.Host),
	}
	for key, value := range values {
		if value != "" {
			annotations[key] = value
		}
	}
	return nil
}

// listJSON is a list of strings in JSON; empty for an empty list.
func listJSON(list []string) string {
	if len(list) == 0 {
		return ""
	}
	value, err := json.Marshal(list)
	if err != nil {
		return "" // Lists of strings can always be encoded.
	}
	return string(value)
}
