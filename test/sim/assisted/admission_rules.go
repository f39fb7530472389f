// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// admitAgent is the webhook of Agents.
func admitAgent(_ context.Context, _ client.Reader, req admission.Request) admission.Response {
	return decide(req, func(before, after *aiv1.Agent) error {
		if after.Spec.InstallationDiskID != "" && after.Spec.InstallationDiskPath != "" {
			return userError("Either InstallationDiskID or InstallationDiskPath can be set, not both.")
		}
		ref := after.Spec.ClusterDeploymentName
		if ref != nil && ref.Namespace != "" && ref.Namespace != req.Namespace {
			return userError("Spec.ClusterDeploymentName.Namespace must match the Agent namespace")
		}
		if req.Operation != admissionv1.Update || ptr.Equal(before.Spec.ClusterDeploymentName, ref) {
			return nil
		}
		dayTwo := after.Status.Kind == kindAddition && ref == nil
		if isOneOf(after.Status.DebugInfo.State, installingStates) && !dayTwo {
			return userError("Attempted to change Spec.ClusterDeploymentName which is immutable during Agent installation.")
		}
		return nil
	})
}

// admitInfraEnv is the webhook of InfraEnvs.
func admitInfraEnv(ctx context.Context, reader client.Reader, req admission.Request) admission.Response {
	return decide(req, func(before, after *aiv1.InfraEnv) error {
		if req.Operation == admissionv1.Create {
			if after.Spec.ClusterRef != nil && after.Spec.OSImageVersion != "" {
				return userError("Either Spec.ClusterRef or Spec.OSImageVersion should be specified (not both).")
			}
			return nil
		}
		switch {
		case !ptr.Equal(before.Spec.ClusterRef, after.Spec.ClusterRef):
			return userError("Attempted to change Spec.ClusterRef which is immutable after InfraEnv creation.")
		case cmp.Or(before.Spec.CPUArchitecture, defaultArchitecture) != cmp.Or(after.Spec.CPUArchitecture, defaultArchitecture):
			return userError("Attempted to change Spec.CpuArchitecture which is immutable after InfraEnv creation.")
		case after.Spec.ClusterRef == nil || before.Spec.OSImageVersion != "" || after.Spec.OSImageVersion == "":
			return nil
		}
		cd := &hivev1.ClusterDeployment{}
		key := types.NamespacedName{Namespace: after.Spec.ClusterRef.Namespace, Name: after.Spec.ClusterRef.Name}
		if err := reader.Get(ctx, key, cd); err != nil || !cd.Spec.Installed {
			return userError(
				"spec.OSImageVersion is not valid. It can't be added alongside with a clusterRef when the cluster is not installed yet.",
			)
		}
		return nil
	})
}

// freeDeployment are the fields of a ClusterDeployment's spec that hive lets change.
var freeDeployment = []string{
	"certificateBundles", "clusterMetadata", "controlPlaneConfig", "ingress", "installed", "preserveOnDelete", "clusterPoolRef", "powerState",
	"hibernateAfter", "installAttemptsLimit", "platform.agentBareMetal.agentSelector",
}

// protectedDelete is hive's annotation that keeps a ClusterDeployment from being deleted.
const protectedDelete = "hive.openshift.io/protected-delete"

// admitDeployment is hive's webhook of ClusterDeployments, as far as it concerns clusters of assisted-service.
func admitDeployment(_ context.Context, _ client.Reader, req admission.Request) admission.Response {
	return decide(req, func(before, after *hivev1.ClusterDeployment) error {
		var errs field.ErrorList
		switch req.Operation {
		case admissionv1.Delete:
			errs = protectionErrors(before)
		case admissionv1.Update:
			if changed := specChanges(req, freeDeployment...); changed != "" {
				return userError("Attempted to change ClusterDeployment.Spec which is immutable except for %s fields. "+
					"Unsupported change: \n%s", strings.Join(freeDeployment, ","), changed)
			}
			errs = installedErrors(before, after)
		default:
			for what, name := range map[string]string{
				"cluster deployment name (.meta.name)": after.Name, "cluster name (.spec.clusterName)": after.Spec.ClusterName,
			} {
				if len(name) > validation.DNS1123LabelMaxLength {
					return userError("Invalid %s: %s", what, validation.MaxLenError(validation.DNS1123LabelMaxLength))
				}
			}
			errs = deploymentErrors(after)
		}
		if len(errs) == 0 {
			return nil
		}
		return apierrors.NewInvalid(hivev1.SchemeGroupVersion.WithKind("ClusterDeployment").GroupKind(), req.Name, errs)
	})
}

func protectionErrors(cd *hivev1.ClusterDeployment) field.ErrorList {
	value := cd.Annotations[protectedDelete]
	if on, err := strconv.ParseBool(value); err != nil || !on {
		return nil
	}
	path := field.NewPath("metadata", "annotations", protectedDelete)
	return field.ErrorList{field.Invalid(path, value, "cannot delete while annotation is present")}
}

func installedErrors(before, after *hivev1.ClusterDeployment) field.ErrorList {
	spec := field.NewPath("spec")
	switch {
	case after.Spec.Installed && after.Spec.ClusterMetadata == nil:
		return field.ErrorList{field.Required(spec.Child("clusterMetadata"), "installed cluster must have cluster metadata")}
	case before.Spec.Installed && !after.Spec.Installed:
		return field.ErrorList{field.Invalid(spec.Child("installed"), false, "cannot make uninstalled once installed")}
	}
	return nil
}

func deploymentErrors(cd *hivev1.ClusterDeployment) (errs field.ErrorList) {
	spec, ref := field.NewPath("spec"), cd.Spec.ClusterInstallRef
	switch {
	case cd.Spec.Installed:
	case cd.Spec.Provisioning != nil && ref != nil:
		errs = append(errs, field.Forbidden(spec.Child("provisioning"), "provisioning and clusterInstallRef cannot be set at the same time"))
	case cd.Spec.Provisioning == nil && ref == nil:
		errs = append(errs, field.Required(spec.Child("provisioning"), "provisioning is required if not installed"))
	}
	if cd.Spec.Platform == (hivev1.Platform{}) {
		errs = append(errs, field.Required(spec.Child("platform"), "must specify a platform"))
	}
	supported := hivev1.ClusterInstallLocalReference{Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall"}
	if ref != nil && (ref.Group != supported.Group || ref.Version != supported.Version || ref.Kind != supported.Kind) {
		errs = append(errs, field.NotSupported(spec.Child("clusterInstallRef", "kind"), ref.Kind, []string{supported.Kind}))
	}
	return errs
}

// specChanges lists what an update changes in spec, but for some fields, which are paths with dots. What is not set and what is empty are
// the same.
func specChanges(req admission.Request, except ...string) string {
	var lines []string
	addChanges(&lines, "", specOf(req.OldObject.Raw), specOf(req.Object.Raw), except)
	return strings.Join(lines, "\n")
}

func specOf(raw []byte) any {
	var object struct {
		Spec any `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return http.StatusText(http.StatusBadRequest) // It was decoded before: this cannot happen.
	}
	return object.Spec
}

func addChanges(lines *[]string, path string, before, after any, except []string) {
	old, isMap := before.(map[string]any)
	now, isMapToo := after.(map[string]any)
	if slices.Contains(except, path) || isUnset(before) && isUnset(after) {
		return
	}
	if !isMap && before != nil || !isMapToo && after != nil {
		if a, b := asText(before), asText(after); a != b {
			*lines = append(*lines, fmt.Sprintf("\t%s: (%s => %s)", path, a, b))
		}
		return
	}
	keys := map[string]bool{}
	for _, fields := range []map[string]any{old, now} {
		for key := range fields {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		addChanges(lines, strings.TrimPrefix(path+"."+key, "."), old[key], now[key], except)
	}
}

func isUnset(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	case float64:
		return v == 0
	}
	return value == nil
}

func asText(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
