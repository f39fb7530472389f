// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// defaultPort is the port of a Metal3Cluster's endpoint that has none.
	defaultPort int64 = 6443

	schemeOCI = "oci://"
)

// refusing makes a webhook of a check. CAPM3 checks what is created and what it is changed to by the same rules: no field is immutable
// (M3-22).
func refusing(check func(object *unstructured.Unstructured) field.ErrorList) func(admission.Request) admission.Response {
	return func(req admission.Request) admission.Response {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(req.Object.Raw, object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		errs := check(object)
		if len(errs) == 0 {
			return admission.Allowed("")
		}
		status := apierrors.NewInvalid(object.GroupVersionKind().GroupKind(), object.GetName(), errs).Status()
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
	}
}

// machineErrors is what CAPM3 finds wrong with a Metal3Machine (M3-91).
func machineErrors(machine *unstructured.Unstructured) field.ErrorList {
	errs := imageErrors(machine, field.NewPath("Spec"), "spec")
	namespace := textOf(nestedMap(machine.Object, "spec", "userData")["namespace"])
	if namespace != "" && namespace != machine.GetNamespace() {
		errs = append(errs, field.Forbidden(
			field.NewPath("spec", "userData", "namespace"), "cross-namespace secret references are not allowed",
		))
	}
	return errs
}

// templateErrors is what CAPM3 finds wrong with a Metal3MachineTemplate (M3-91).
func templateErrors(template *unstructured.Unstructured) field.ErrorList {
	return imageErrors(template, field.NewPath("Spec", "Template", "Spec"), "spec", "template", "spec")
}

// imageErrors is what CAPM3 finds wrong with the image of the machine whose spec is at a path. It names the fields as Go does.
func imageErrors(object *unstructured.Unstructured, named *field.Path, spec ...string) field.ErrorList {
	fields, base := nestedMap(object.Object, spec...), named.Child("Image")
	if textOf(nestedMap(fields, "customDeploy")["method"]) != "" {
		return nil
	}
	image, format := nestedMap(fields, "image"), formatV1Beta2
	if object.GroupVersionKind().Version == versionV1Beta1 {
		// v1beta1 has no word for no image: to CAPM3 it is one whose fields are empty.
		format = formatV1Beta1
	} else if image == nil {
		return field.ErrorList{field.Required(base, "either image or customDeploy is required")}
	}
	var errs field.ErrorList
	address := textOf(image["url"])
	if address == "" {
		errs = append(errs, field.Required(base.Child("URL"), "cannot be empty"))
	} else if _, err := url.ParseRequestURI(address); err != nil {
		errs = append(errs, field.Invalid(base.Child("URL"), address, "not a valid URL"))
	}
	checked := image[format] == formatLiveISO || strings.HasPrefix(address, schemeOCI)
	if !checked && textOf(image["checksum"]) == "" {
		errs = append(errs, field.Required(base.Child("Checksum"), "cannot be empty"))
	}
	return errs
}

// clusterErrors is what CAPM3 finds wrong with a Metal3Cluster (M3-92).
func clusterErrors(cluster *unstructured.Unstructured) field.ErrorList {
	endpoint := field.NewPath("spec", "controlPlaneEndpoint")
	if textOf(nestedMap(cluster.Object, "spec", "controlPlaneEndpoint")["host"]) == "" {
		return field.ErrorList{field.Invalid(endpoint, "", "is required")}
	}
	return nil
}

// defaultCluster is the defaulting webhook of Metal3Clusters.
func defaultCluster(req admission.Request) admission.Response {
	cluster := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.Object.Raw, cluster); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !setDefaultPort(cluster) {
		return admission.Allowed("")
	}
	changed, err := json.Marshal(cluster)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, changed)
}

// setDefaultPort gives an endpoint its port, without which the schema of v1beta1 refuses it (M3-92). It tells whether there was none.
func setDefaultPort(cluster *unstructured.Unstructured) bool {
	endpoint := nestedMap(cluster.Object, "spec", "controlPlaneEndpoint")
	if port, _ := endpoint["port"].(int64); endpoint == nil || port != 0 {
		return false
	}
	endpoint["port"] = defaultPort
	return true
}
