// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	utilconversion "sigs.k8s.io/cluster-api/util/conversion"
)

// TestRecordedConversion converts a Metal3Machine that the real CAPM3 converted, whose v1beta2 form is in its annotation, and back.
func TestRecordedConversion(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile(filepath.Join("testdata", convertedMachine+".yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	recorded := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal(data, recorded)).To(Succeed())
	hub := &unstructured.Unstructured{}
	g.Expect(json.Unmarshal([]byte(recorded.GetAnnotations()[utilconversion.DataAnnotation]), hub)).To(Succeed())
	hub.Object["metadata"] = recorded.DeepCopy().Object["metadata"]
	annotations := hub.GetAnnotations()
	delete(annotations, utilconversion.DataAnnotation)
	hub.SetAnnotations(annotations)

	t.Run("to v1beta1 as recorded, with an empty checksumType", func(t *testing.T) {
		NewWithT(t).Expect(yaml.Marshal(convertOne(t, hub, "v1beta1"))).To(MatchYAML(data))
	})
	t.Run("and back, as it was", func(t *testing.T) {
		NewWithT(t).Expect(convertOne(t, recorded, "v1beta2").Object).To(Equal(hub.Object))
	})
}

// The cases in which one Metal3Machine was read in both API versions.
const (
	readV1Beta2 = "same Metal3Machine read as v1beta2"
	readV1Beta1 = "same Metal3Machine read as v1beta1"
)

// TestReadInBothVersions converts a Metal3Machine that waits for its owner as the real CAPM3 did.
func TestReadInBothVersions(t *testing.T) {
	g := NewWithT(t)
	cases := recordedCases(t)
	hub := &unstructured.Unstructured{Object: map[string]any{"spec": cases[readV1Beta2].Spec, "status": cases[readV1Beta2].Status}}
	hub.SetAPIVersion(infrastructureGroup + "/" + versionV1Beta2)
	hub.SetKind(kindMachine)
	found := convertOne(t, hub, versionV1Beta1)
	g.Expect(found.Object["spec"]).To(Equal(cases[readV1Beta1].Spec))
	g.Expect(found.Object["status"]).To(Equal(cases[readV1Beta1].Status))
}

func TestConversion(t *testing.T) {
	for name, test := range map[string]struct{ kind, from, to, object, want string }{
		"a template without a format gets an empty one": {
			kind: kindMachineTemplate, from: "v1beta2", to: "v1beta1",
			object: `{"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"image":{"url":"http://x"}}}}}`,
			want:   `{"spec":{"template":{"spec":{"image":{"url":"http://x","format":"","checksumType":""}}}}}`,
		},
		"a checksum that was left out is an empty one": {
			kind: kindMachineTemplate, from: "v1beta1", to: "v1beta2",
			object: `{"spec":{"template":{"spec":{"image":{"url":"http://x","format":"live-iso"}}}}}`,
			want:   `{"spec":{"template":{"spec":{"image":{"url":"http://x","diskFormat":"live-iso","checksum":""}}}}}`,
		},
		"no cloud provider": {
			kind: kindCluster, from: "v1beta1", to: "v1beta2",
			object: `{"spec":{"noCloudProvider":true},"status":{"ready":true}}`,
			want:   `{"spec":{"cloudProviderEnabled":false},"status":{"initialization":{"provisioned":true}}}`,
		},
		"a cloud provider": {
			kind: kindCluster, from: "v1beta2", to: "v1beta1",
			object: `{"spec":{"cloudProviderEnabled":true}}`,
			want:   `{"spec":{"cloudProviderEnabled":true,"noCloudProvider":false}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object := &unstructured.Unstructured{Object: map[string]any{}}
			g.Expect(json.Unmarshal([]byte(test.object), &object.Object)).To(Succeed())
			object.SetAPIVersion(infrastructureGroup + "/" + test.from)
			object.SetKind(test.kind)
			found := convertOne(t, object, test.to)
			delete(found.Object, "metadata")
			delete(found.Object, "kind")
			delete(found.Object, "apiVersion")
			g.Expect(json.Marshal(found.Object)).To(MatchJSON(test.want))
		})
	}
}

// convertOne sends an object to the webhook, as the API server does.
func convertOne(t *testing.T, object *unstructured.Unstructured, version string) *unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	raw, err := json.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(&apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID: "1", DesiredAPIVersion: infrastructureGroup + "/" + version, Objects: []runtime.RawExtension{{Raw: raw}},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, ConversionPath, bytes.NewReader(body))
	Conversion().ServeHTTP(recorder, request)
	review := &apiextensionsv1.ConversionReview{}
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), review)).To(Succeed())
	g.Expect(review.Response.Result.Status).To(Equal(metav1.StatusSuccess), review.Response.Result.Message)
	converted := &unstructured.Unstructured{}
	g.Expect(json.Unmarshal(review.Response.ConvertedObjects[0].Raw, converted)).To(Succeed())
	return converted
}
