// SPDX-License-Identifier: Apache-2.0

package customresourcestate_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capi-openshift/agent-providers/test/crdschema"
	"github.com/capi-openshift/agent-providers/test/monitoring/customresourcestate"
)

// schemaOf is the schema of one of our kinds.
func schemaOf(t *testing.T, kind string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var schema *apiextensionsv1.JSONSchemaProps
	for _, folder := range folders {
		if found, err := crdschema.ReadKind(folder, kind); err == nil {
			schema = found
		}
	}
	NewWithT(t).Expect(schema).NotTo(BeNil(), kind)
	return schema
}

// document is a configuration with one metric of the control plane.
func document(metric string) []byte {
	return []byte(`
kind: CustomResourceStateMetrics
spec:
  resources:
  - groupVersionKind: {group: controlplane.cluster.x-k8s.io, version: v1beta1, kind: OpenshiftAssistedControlPlane}
    metricNamePrefix: p
    metrics:
    - name: m
      each: ` + metric)
}

// TestRefused: what is not evaluated as kube-state-metrics does is refused, and so is what it does not know.
func TestRefused(t *testing.T) {
	for metric, want := range map[string]string{
		`{type: Gauge, gauge: {path: [spec, replicas], labelFromKey: key}}`:                        "unknown field",
		`{type: Counter, gauge: {path: [spec, replicas]}}`:                                         `type "Counter" has no part`,
		`{type: Info, gauge: {path: [spec, replicas]}}`:                                            `type "Info" has no part`,
		`{type: Gauge, gauge: {path: [spec]}, info: {path: [spec]}}`:                               "has a part for Info",
		`{type: Gauge, gauge: {path: [status, conditions, "[type=Ready]", status]}}`:               "look-ups in lists",
		`{type: Info, info: {path: [metadata], labelsFromPath: {"*": [labels]}}}`:                  "labels such as *",
		`{type: Info, info: {path: [spec], nilIsZero: true}}`:                                      "belongs to a Gauge",
		`{type: Info, info: {path: [spec], valueFrom: [replicas]}}`:                                "an Info has no valueFrom",
		`{type: StateSet, stateSet: {path: [status, install, phase], labelName: phase}}`:           "belong to a StateSet",
		`{type: Gauge, gauge: {path: [status, install, phase], labelName: phase, list: [Failed]}}`: "belong to a StateSet",
	} {
		t.Run(metric, func(t *testing.T) {
			_, err := customresourcestate.Parse(document(metric))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

// TestWrongPaths: a path that the CRD does not have is found.
func TestWrongPaths(t *testing.T) {
	for metric, want := range map[string]string{
		`{type: Gauge, gauge: {path: [spec, replicas]}}`:                                      "",
		`{type: Gauge, gauge: {path: [metadata, annotations, cluster.x-k8s.io/paused]}}`:      "",
		`{type: Gauge, gauge: {path: [spec, replica]}}`:                                       "there is no field spec.replica",
		`{type: Gauge, gauge: {path: [status, conditions], valueFrom: [since]}}`:              "no field status.conditions[].since",
		`{type: Info, info: {path: [status, conditions], labelsFromPath: {reason: [cause]}}}`: "label reason: there is no field",
		`{type: Info, info: {path: [metadata, owners]}}`:                                      "no field metadata.owners",

		`{type: StateSet, stateSet: {path: [status, conditions], valueFrom: [status], labelName: p, list: [Unknown]}}`: "the field may be [",
	} {
		t.Run(metric, func(t *testing.T) {
			g := NewWithT(t)
			config, err := customresourcestate.Parse(document(metric))
			g.Expect(err).NotTo(HaveOccurred())
			err = config.Spec.Resources[0].CheckSchema(schemaOf(t, "OpenshiftAssistedControlPlane"))
			if want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

// TestValues: what kube-state-metrics makes of values that are there, that are not, and that are no numbers.
func TestValues(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "OpenshiftAssistedControlPlane",
		"spec":   map[string]any{"replicas": int64(3), "version": "v1.35.0", "time": "1970-01-01T00:01:00Z", "held": true, "half": 0.5},
		"status": map[string]any{"install": map[string]any{"phase": "Failed"}},
	}}
	labels := `{customresource_group="controlplane.cluster.x-k8s.io",customresource_kind="OpenshiftAssistedControlPlane",` +
		`customresource_version="v1beta1"} `
	for metric, want := range map[string][]string{
		`{type: Gauge, gauge: {path: [spec, replicas]}}`:                                    {labels + "3"},
		`{type: Gauge, gauge: {path: [spec], valueFrom: [replicas]}}`:                       {labels + "3"},
		`{type: Gauge, gauge: {path: [spec, time]}}`:                                        {labels + "60"},
		`{type: Gauge, gauge: {path: [spec, held]}}`:                                        {labels + "1"},
		`{type: Gauge, gauge: {path: [spec, half]}}`:                                        {labels + "0.5"},
		`{type: Gauge, gauge: {path: [status, replicas]}}`:                                  nil,
		`{type: Gauge, gauge: {path: [status, replicas], nilIsZero: true}}`:                 {labels + "0"},
		`{type: Info, info: {path: [status, nothing], labelsFromPath: {a: []}}}`:            nil,
		`{type: StateSet, stateSet: {path: [status, phase], labelName: p, list: [Failed]}}`: nil,
	} {
		t.Run(metric, func(t *testing.T) {
			g := NewWithT(t)
			config, err := customresourcestate.Parse(document(metric))
			g.Expect(err).NotTo(HaveOccurred())
			samples, err := config.Evaluate(object)
			g.Expect(err).NotTo(HaveOccurred())
			var lines []string
			for _, sample := range samples {
				lines = append(lines, sample.String()[len("p_m"):])
			}
			g.Expect(lines).To(Equal(want))
		})
	}
	for metric, want := range map[string]string{
		`{type: Gauge, gauge: {path: [spec, version]}}`: "neither a number nor a time",
		`{type: Gauge, gauge: {path: [spec]}}`:          "is an object",
	} {
		t.Run(metric, func(t *testing.T) {
			g := NewWithT(t)
			config, err := customresourcestate.Parse(document(metric))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = config.Evaluate(object)
			g.Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}
