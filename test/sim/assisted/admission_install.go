// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// defaultInstall is the mutating webhook: it says who manages the network where the user does not.
func defaultInstall(_ context.Context, _ client.Reader, req admission.Request) admission.Response {
	aci := &hiveext.AgentClusterInstall{}
	if err := json.Unmarshal(req.Object.Raw, aci); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if begun(aci) || !aci.DeletionTimestamp.IsZero() || aci.Spec.Networking.UserManagedNetworking != nil {
		return admission.Allowed("")
	}
	platform := aci.Spec.PlatformType
	userManaged := isSingleNode(aci) && platform == "" || platform == hiveext.NonePlatformType || platform == hiveext.ExternalPlatformType
	object := &unstructured.Unstructured{}
	err := json.Unmarshal(req.Object.Raw, &object.Object)
	if err == nil {
		err = unstructured.SetNestedField(object.Object, userManaged, "spec", "networking", "userManagedNetworking")
	}
	changed, encodeErr := json.Marshal(object.Object)
	if err = errors.Join(err, encodeErr); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, changed)
}

// admitInstall is the validating webhook of AgentClusterInstalls.
func admitInstall(_ context.Context, _ client.Reader, req admission.Request) admission.Response {
	return decide(req, func(before, after *hiveext.AgentClusterInstall) error {
		if req.Operation == admissionv1.Create {
			return platformError(after)
		}
		if imageSetName(before) != imageSetName(after) {
			return userError("Attempted to change AgentClusterInstall.ImageSetRef which is immutable")
		}
		if err := platformError(after); err != nil {
			return err
		}
		return frozenError(req, after)
	})
}

func imageSetName(aci *hiveext.AgentClusterInstall) string {
	return ptr.Deref(aci.Spec.ImageSetRef, hivev1.ClusterImageSetReference{}).Name
}

// isSingleNode is the webhook's idea of a single node: one control-plane host and no worker.
func isSingleNode(aci *hiveext.AgentClusterInstall) bool {
	return aci.Spec.ProvisionRequirements.ControlPlaneAgents == 1 && aci.Spec.ProvisionRequirements.WorkerAgents == 0
}

// platformError compares the platform with who manages the network. A field that is not set fits everything.
func platformError(aci *hiveext.AgentClusterInstall) error {
	const baremetal = string(hiveext.BareMetalPlatformType)
	platform, userManaged := aci.Spec.PlatformType, aci.Spec.Networking.UserManagedNetworking
	if isSingleNode(aci) && !ptr.Deref(userManaged, true) {
		return conflictf("UserManagedNetworking must be set to true with SNO")
	}
	lower := strings.ToLower(string(platform))
	mandatory := platform == hiveext.NonePlatformType || platform == hiveext.ExternalPlatformType
	forbidden := platform == hiveext.BareMetalPlatformType || platform == hiveext.NutanixPlatformType
	switch {
	case mandatory && !ptr.Deref(userManaged, true):
		return conflictf("Can't set %s platform with user-managed-networking disabled", lower)
	case forbidden && ptr.Deref(userManaged, false):
		return conflictf("Can't set %s platform with user-managed-networking enabled", lower)
	case isSingleNode(aci) && string(platform) == baremetal:
		return conflictf("Can't set %s platform on single node OpenShift", lower)
	}
	return nil
}

// frozenFields are those of spec that may change after the installation has begun.
var frozenFields = []string{"ClusterMetadata", "IgnitionEndpoint"}

// frozenError refuses changes of an installation that has begun (ASSISTED 1.3). It compares what was sent: the Go type has not every field.
func frozenError(req admission.Request, after *hiveext.AgentClusterInstall) error {
	if !begun(after) {
		return nil
	}
	free := []string{"clusterMetadata", "ignitionEndpoint"}
	if reason := completedReason(after); reason == hiveext.ClusterInstalledReason || reason == hiveext.ClusterInstallationFailedReason {
		free = append(free, "provisionRequirements")
	}
	if changed := specChanges(req, free...); changed != "" {
		return userError("Attempted to change AgentClusterInstall.Spec which is immutable after install started, except for %s fields. "+
			"Unsupported change: \n%s", strings.Join(frozenFields, ","), changed)
	}
	return nil
}

// begun says whether an installation has begun, as the webhooks read it in the condition Completed.
func begun(aci *hiveext.AgentClusterInstall) bool {
	switch completedReason(aci) {
	case hiveext.ClusterInstallationFailedReason, hiveext.ClusterInstalledReason, hiveext.ClusterInstallationInProgressReason,
		hiveext.ClusterAlreadyInstallingReason:
		return true
	}
	return false
}

func completedReason(aci *hiveext.AgentClusterInstall) string {
	for _, c := range aci.Status.Conditions {
		if c.Type == hiveext.ClusterCompletedCondition {
			return c.Reason
		}
	}
	return ""
}
