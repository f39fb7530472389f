// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	utilconversion "sigs.k8s.io/cluster-api/util/conversion"
)

const (
	// ConversionPath is where the CRDs of CAPM3 expect its conversion webhook.
	ConversionPath = "/convert"

	versionV1Beta1 = "v1beta1"
	versionV1Beta2 = "v1beta2"

	formatV1Beta1 = "format"
	formatV1Beta2 = "diskFormat"
)

// Conversion returns CAPM3's conversion webhook between v1beta1 and v1beta2 (M3-81), for the kinds that have one.
func Conversion() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("the body is no ConversionReview with a request: %v", err), http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // The API server sees a connection that breaks, and says so.
	})
}

// answer converts all objects of a request.
func answer(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range request.Objects {
		object := &unstructured.Unstructured{}
		err := json.Unmarshal(raw.Raw, object)
		if err == nil {
			object, err = converted(object, request.DesiredAPIVersion)
		}
		if err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: object})
	}
	return response
}

// converted returns the object in another API version.
func converted(object *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	spec, known := map[string][]string{
		kindMachine: {"spec"}, kindMachineTemplate: {"spec", "template", "spec"}, kindCluster: {"spec"},
	}[object.GetKind()]
	if !known {
		return nil, fmt.Errorf("conversion of kind %s is not simulated", object.GetKind())
	}
	target := object.DeepCopy()
	target.SetAPIVersion(apiVersion)
	if target.GetAPIVersion() == object.GetAPIVersion() {
		return target, nil
	}
	if domains, _, _ := unstructured.NestedFieldNoCopy(target.Object, append(spec, "failureDomains")...); domains != nil {
		return nil, fmt.Errorf("conversion of %s.failureDomains is not simulated", spec[0])
	}
	if target.GroupVersionKind().Version == versionV1Beta1 {
		return target, toV1Beta1(object, target, spec)
	}
	return target, toV1Beta2(target, spec)
}

// toV1Beta1 writes what CAPM3 does, also the empty strings: v1beta1 has pointers for them, which CAPM3 always sets, and its schema allows
// none.
func toV1Beta1(source, target *unstructured.Unstructured, spec []string) error {
	fields := nestedMap(target.Object, spec...)
	if image := nestedMap(fields, "image"); image != nil {
		image[formatV1Beta1] = textOf(image[formatV1Beta2])
		image["checksumType"] = textOf(image["checksumType"])
		delete(image, formatV1Beta2)
		dropEmpty(image, "checksum")
	}
	if enabled, found := fields["cloudProviderEnabled"].(bool); found {
		fields["noCloudProvider"] = !enabled
	}
	unstructured.RemoveNestedField(target.Object, "spec", "template", "metadata")
	if status := nestedMap(target.Object, "status"); status != nil {
		provisioned, _, _ := unstructured.NestedBool(status, "initialization", "provisioned")
		deprecated := nestedMap(status, "deprecated", versionV1Beta1)
		if conditions := status["conditions"]; conditions != nil {
			status[versionV1Beta2] = map[string]any{"conditions": conditions}
		}
		for _, name := range []string{"conditions", "initialization", "deprecated"} {
			delete(status, name)
		}
		status["ready"] = provisioned
		for name, value := range deprecated {
			status[name] = value
		}
	}
	return utilconversion.MarshalData(source.DeepCopy(), target)
}

// toV1Beta2 restores what v1beta1 cannot say from the annotation that toV1Beta1 left, if it is still there.
func toV1Beta2(target *unstructured.Unstructured, spec []string) error {
	kept := map[string]any{}
	known, err := utilconversion.UnmarshalData(target, &kept)
	if err != nil {
		return fmt.Errorf("read annotation %s of %s %s: %w", utilconversion.DataAnnotation, target.GetKind(), target.GetName(), err)
	}
	fields := nestedMap(target.Object, spec...)
	if image := nestedMap(fields, "image"); image != nil {
		image[formatV1Beta2] = textOf(image[formatV1Beta1])
		image["checksum"] = textOf(image["checksum"])
		delete(image, formatV1Beta1)
		dropEmpty(image, formatV1Beta2, "checksumType")
		if known && nestedMap(kept, append(spec, "image")...)["checksum"] == nil {
			delete(image, "checksum")
		}
	}
	if disabled, found := fields["noCloudProvider"].(bool); found {
		delete(fields, "noCloudProvider")
		if _, said := fields["cloudProviderEnabled"]; !said {
			fields["cloudProviderEnabled"] = !disabled
		}
	}
	if target.GetKind() == kindMachineTemplate && known {
		if metadata := nestedMap(kept, "spec", "template", "metadata"); metadata != nil {
			return unstructured.SetNestedMap(target.Object, metadata, "spec", "template", "metadata")
		}
	}
	if status := nestedMap(target.Object, "status"); status != nil {
		statusToV1Beta2(status, nestedMap(kept, "status"))
	}
	return nil
}

func statusToV1Beta2(status, kept map[string]any) {
	deprecated := map[string]any{}
	for _, name := range []string{"conditions", "failureReason", "failureMessage"} {
		if value, found := status[name]; found {
			deprecated[name] = value
			delete(status, name)
		}
	}
	if len(deprecated) > 0 {
		status["deprecated"] = map[string]any{versionV1Beta1: deprecated}
	}
	if conditions := nestedMap(status, versionV1Beta2)["conditions"]; conditions != nil {
		status["conditions"] = conditions
	}
	ready, _ := status["ready"].(bool)
	delete(status, "ready")
	delete(status, versionV1Beta2)
	// A false that nobody has written is none.
	if was := nestedMap(kept, "initialization")["provisioned"]; ready || was == false {
		status["initialization"] = map[string]any{"provisioned": ready}
	}
}

// nestedMap returns the object at a path, to be changed in place; nil when there is none.
func nestedMap(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// textOf returns a string, the empty one for anything else.
func textOf(value any) string {
	text, _ := value.(string)
	return text
}

func dropEmpty(object map[string]any, names ...string) {
	for _, name := range names {
		if object[name] == "" {
			delete(object, name)
		}
	}
}
