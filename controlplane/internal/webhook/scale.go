// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// scalePath is the path of Scale in the marker below.
const scalePath = "/validate-scale-controlplane-cluster-x-k8s-io-v1beta1-openshiftassistedcontrolplane"

// Scale validates the subresource scale of OpenshiftAssistedControlPlanes, which kubectl scale and autoscalers write. Its requests hold a
// number of replicas only, and do not reach the webhook of the control plane.
type Scale struct {
	// Reader reads past the cache: the number has to fit to the control plane as it is now.
	Reader client.Reader
}

// +kubebuilder:webhook:verbs=update,path=/validate-scale-controlplane-cluster-x-k8s-io-v1beta1-openshiftassistedcontrolplane,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes/scale,versions=v1beta1,name=validation-scale.openshiftassistedcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var _ admission.Handler = &Scale{}

// Handle refuses what an update of spec.replicas would be refused for.
func (s *Scale) Handle(ctx context.Context, request admission.Request) admission.Response {
	scale := &autoscalingv1.Scale{}
	if err := json.Unmarshal(request.Object.Raw, scale); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Scale of OpenshiftAssistedControlPlane %s: %w", request.Name, err))
	}
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Name}, cp)
	if apierrors.IsNotFound(err) {
		return admission.Allowed("") // The API server tells who asks.
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("get OpenshiftAssistedControlPlane %s: %w", request.Name, err))
	}
	scaled := cp.DeepCopy()
	scaled.Spec.Replicas = ptr.To(scale.Spec.Replicas)
	_, err = (&ControlPlane{}).ValidateUpdate(ctx, cp, scaled)
	if refusal := apierrors.APIStatus(nil); errors.As(err, &refusal) {
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: ptr.To(refusal.Status())}}
	}
	return admission.Allowed("")
}
