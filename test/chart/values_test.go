// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/internal/tracing"
)

const digest = "sha256:8f3b1c0d5e7a9264b1f0c3d2e5a7968b8f3b1c0d5e7a9264b1f0c3d2e5a7968b"

// deployments are the keys of the Deployments, by those of the values.
var deployments = map[string]string{
	"bootstrap":    "Deployment/openshift-assisted-bootstrap-system/openshift-assisted-bootstrap-controller-manager",
	"controlPlane": "Deployment/openshift-assisted-control-plane-system/openshift-assisted-control-plane-controller-manager",
}

// podField sets a field of a Deployment's pod, or of its container, to a value in YAML; of a list, the value is its end.
func podField(t *testing.T, deployment map[string]any, inContainer bool, field, value string) {
	t.Helper()
	g := NewWithT(t)
	var parsed any
	g.Expect(yaml.Unmarshal([]byte(value), &parsed)).To(Succeed())
	pod := deployment["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	if inContainer {
		pod = pod["containers"].([]any)[0].(map[string]any)
	}
	if list, ok := pod[field].([]any); ok && (field == "args" || field == "env") {
		parsed = append(list, parsed.([]any)...)
	}
	pod[field] = parsed
}

// addEgress adds a rule, in YAML, to the egress of both NetworkPolicies.
func addEgress(t *testing.T, want objects, rule string) {
	t.Helper()
	g := NewWithT(t)
	var parsed any
	g.Expect(yaml.Unmarshal([]byte(rule), &parsed)).To(Succeed())
	changed := 0
	for key, object := range want {
		if strings.HasPrefix(key, "NetworkPolicy/") {
			spec := object["spec"].(map[string]any)
			spec["egress"] = append(spec["egress"].([]any), parsed)
			changed++
		}
	}
	g.Expect(changed).To(Equal(len(deployments)))
}

// TestProviderValues: each value of a manager changes the one field of its own Deployment.
func TestProviderValues(t *testing.T) {
	const affinity = "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}"
	for name, tt := range map[string]struct {
		values, field, value string
		container            bool
	}{
		"repository":  {"{image: {repository: example.com/a/b}}", "image", "example.com/a/b:" + version, true},
		"tag":         {"{image: {repository: example.com:5000/b, tag: '1.0'}}", "image", "example.com:5000/b:1.0", true},
		"digest":      {"{image: {repository: example.com/b, tag: '1.0', digest: '" + digest + "'}}", "image", "example.com/b@" + digest, true},
		"pull policy": {"{image: {pullPolicy: Always}}", "imagePullPolicy", "Always", true},
		"resources": {
			"{resources: {requests: {cpu: 1}, limits: {memory: 3Gi}}}",
			"resources", "{requests: {cpu: 1, memory: 128Mi}, limits: {memory: 3Gi}}", true,
		},
		"no limits":    {"{resources: {limits: null}}", "resources", "{requests: {cpu: 50m, memory: 128Mi}}", true},
		"selector":     {"{nodeSelector: {a.example.com/b: c}}", "nodeSelector", "{a.example.com/b: c}", false},
		"tolerations":  {"{tolerations: [{key: a, operator: Exists}]}", "tolerations", "[{key: a, operator: Exists}]", false},
		"affinity":     {"{affinity: " + affinity + "}", "affinity", affinity, false},
		"extra flags":  {"{extraArgs: [--v=4, --watch-filter=a]}", "args", "[--v=4, --watch-filter=a]", true},
		"several":      {"{replicas: 2}", "", "2", false},
		"none at work": {"{replicas: 0}", "", "0", false},
	} {
		for provider, key := range deployments {
			t.Run(name+" of "+provider, func(t *testing.T) {
				g := NewWithT(t)
				rendered, err := render(t, provider+": "+tt.values)
				g.Expect(err).NotTo(HaveOccurred())
				want := components(t)
				if tt.field == "" {
					set(t, want[key], int64(tt.value[0]-'0'), "spec", "replicas")
				} else {
					podField(t, want[key], tt.container, tt.field, tt.value)
				}
				expectEqual(t, normalized(t, read(t, rendered)), normalized(t, want))
			})
		}
	}
}

// normalized makes numbers of one type of all that the two ways of decoding make.
func normalized(t *testing.T, all objects) objects {
	t.Helper()
	data, err := yaml.Marshal(all)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	normal := objects{}
	NewWithT(t).Expect(yaml.Unmarshal(data, &normal)).To(Succeed())
	return normal
}

// TestSharedValues: each value of both providers changes the objects that it is about.
func TestSharedValues(t *testing.T) {
	without := func(kind string) func(*testing.T, objects) {
		return func(_ *testing.T, want objects) {
			for key := range want {
				if strings.HasPrefix(key, kind+"/") {
					delete(want, key)
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		values string
		change func(*testing.T, objects)
	}{
		"no NetworkPolicy": {"networkPolicy: {enabled: false}", without("NetworkPolicy")},
		"a registry's port": {"networkPolicy: {extraEgress: [{ports: [{port: 5000, protocol: TCP}]}]}", func(t *testing.T, want objects) {
			addEgress(t, want, "{ports: [{port: 5000, protocol: TCP}]}")
		}},
		"traces": {"tracing: {endpoint: 'https://traces.example.com:443', port: 4318}", func(t *testing.T, want objects) {
			addEgress(t, want, "{ports: [{port: 4318, protocol: TCP}]}")
			for _, key := range deployments {
				podField(t, want[key], true, "env", "[{name: "+tracing.EndpointVariable+", value: 'https://traces.example.com:443'}]")
			}
		}},
		"no Namespaces": {"namespaces: {create: false}", without("Namespace")},
		"no CRDs":       {"crds: {install: false}", without("CustomResourceDefinition")},
		"CRDs that go with the release": {"crds: {keep: false}", func(_ *testing.T, want objects) {
			for _, object := range want {
				annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
				delete(annotations, "helm.sh/resource-policy")
			}
		}},
		"pull secrets": {"imagePullSecrets: [{name: registry}]", func(t *testing.T, want objects) {
			for _, key := range deployments {
				podField(t, want[key], false, "imagePullSecrets", "[{name: registry}]")
			}
		}},
		"values of others": {"global: {a: b}", func(*testing.T, objects) {}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rendered, err := render(t, tt.values)
			g.Expect(err).NotTo(HaveOccurred())
			want := components(t)
			before := normalized(t, want)
			tt.change(t, want)
			if name != "values of others" {
				g.Expect(normalized(t, want)).NotTo(Equal(before))
			}
			expectEqual(t, normalized(t, read(t, rendered)), normalized(t, want))
		})
	}
}

// TestSchema: values that cannot be meant are refused, with the name of the value.
func TestSchema(t *testing.T) {
	for values, problem := range map[string]string{
		"bootstrap: {replica: 2}":                                "/bootstrap",
		"bootstrap: {replicas: two}":                             "/bootstrap/replicas",
		"bootstrap: {replicas: -1}":                              "/bootstrap/replicas",
		"controlPlane: {image: {repository: 'example.com/a:b'}}": "/controlPlane/image/repository",
		"controlPlane: {image: {repository: manager}}":           "/controlPlane/image/repository",
		"controlPlane: {image: {tag: 'a b'}}":                    "/controlPlane/image/tag",
		"controlPlane: {image: {digest: 'sha256:1'}}":            "/controlPlane/image/digest",
		"controlPlane: {image: {pullPolicy: Sometimes}}":         "/controlPlane/image/pullPolicy",
		"controlPlane: {image: example.com/a/b}":                 "/controlPlane/image",
		"bootstrap: {resources: {limits: {memory: much}}}":       "/bootstrap/resources/limits/memory",
		"bootstrap: {resources: {limit: {memory: 1Gi}}}":         "/bootstrap/resources",
		"bootstrap: {tolerations: [{effect: Never}]}":            "/bootstrap/tolerations/0/effect",
		"bootstrap: {affinity: {node: {}}}":                      "/bootstrap/affinity",
		"bootstrap: {nodeSelector: {a: true}}":                   "/bootstrap/nodeSelector/a",
		"bootstrap: {extraArgs: [v=4]}":                          "/bootstrap/extraArgs/0",
		"bootstrap: {extraArgs: [--namespace=a]}":                "/bootstrap/extraArgs/0",
		"watchNamespace: [a, b]":                                 "/watchNamespace",
		"watchNamespace: A_B":                                    "/watchNamespace",
		"webhookCertificates: {issuer: other}":                   "/webhookCertificates/issuer",
		"networkPolicy: false":                                   "/networkPolicy",
		"networkPolicy: {enabled: 'no'}":                         "/networkPolicy/enabled",
		"networkPolicy: {extraEgress: [5000]}":                   "/networkPolicy/extraEgress/0",
		"networkPolicy: {extraEgress: [{to: []}]}":               "/networkPolicy/extraEgress/0",
		"networkPolicy: {extraEgress: [{ports: []}]}":            "/networkPolicy/extraEgress/0/ports",
		"networkPolicy: {extraEgress: [{ports: [{port: 0}]}]}":   "/networkPolicy/extraEgress/0/ports/0/port",
		"tracing: {endpoint: 'collector:4317'}":                  "/tracing/endpoint",
		"tracing: {endpoint: 'http://a:b@collector'}":            "/tracing/endpoint",
		"tracing: {port: 70000}":                                 "/tracing/port",
		"tracing: {enabled: true}":                               "/tracing",
		"metrics: {enabled: true}":                               "/metrics",
		"imagePullSecrets: [registry]":                           "/imagePullSecrets/0",
		"crds: {install: maybe}":                                 "/crds/install",
		"controlplane: {replicas: 2}":                            "controlplane",
	} {
		t.Run(values, func(t *testing.T) {
			_, err := render(t, values)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("schema"), ContainSubstring(problem))))
		})
	}
}
