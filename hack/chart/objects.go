// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/util/container"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// provider is one of the two in the chart.
type provider struct {
	folder     string // below config/
	components string // its file of a release
	key        string // of its values
}

var providers = []provider{
	{"bootstrap", "bootstrap-components.yaml", "bootstrap"},
	{"controlplane", "control-plane-components.yaml", "controlPlane"},
}

// The conditions on values that more than one object depends on.
const (
	oneNamespace   = ".Values.watchNamespace"
	serviceCA      = `eq .Values.webhookCertificates.issuer "service-ca"`
	serviceMonitor = ".Values.metrics.serviceMonitor.enabled"
	tracing        = ".Values.tracing.endpoint"

	// watched is the name that the namespaced folder has, in whose place the expression stands.
	watched           = "clusters"
	watchedExpression = "{{ .Values.watchNamespace }}"
	// The address and the port that components/tracing has, in whose places these expressions stand.
	collector               = "http://collector.observability.svc:4317"
	collectorExpression     = "{{ .Values.tracing.endpoint | quote }}"
	collectorPort           = 4317
	collectorPortExpression = "{{ .Values.tracing.port }}"
)

// variantFolder is a kustomize folder whose differences from the default the chart has on a condition.
type variantFolder struct {
	condition string
	name      string
	kind      folderKind
}

// folderKind says what a folder is rendered with.
type folderKind int

const (
	whole     folderKind = iota // alone
	component                   // as a component of the default
	addition                    // beside the default
	shared                      // as a component of the default that both providers have in common
)

var variants = []variantFolder{
	{oneNamespace, "namespaced", whole},
	{serviceCA, "service-ca", component},
	{serviceMonitor, "monitoring", addition},
	{tracing, "tracing", shared},
}

// kindConditions are the values without which no object of a kind is there.
var kindConditions = map[string]string{
	"CustomResourceDefinition": ".Values.crds.install",
	"Namespace":                ".Values.namespaces.create",
	"NetworkPolicy":            ".Values.networkPolicy.enabled",
}

// rendered are the objects of a variant.
type rendered struct {
	variantFolder
	objects []unstructured.Unstructured
}

// defaults are values that come from the components file.
type defaults struct {
	Repository, Reference string // of the image; together they are its name
	Replicas              any
	Resources             any
	Tolerations           any
}

func parse(data []byte) ([]unstructured.Unstructured, error) {
	objects, err := utilyaml.ToUnstructured(bytes.TrimSpace(data))
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	return objects, nil
}

// inline returns a value as YAML on one line.
func inline(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}

// pod returns the specification of the Deployment and of its pods, and the manager's container.
func pod(object map[string]any) (deployment, pod, manager map[string]any, err error) {
	deployment, _, err = unstructured.NestedMap(object, "spec")
	if err == nil {
		pod, _, err = unstructured.NestedMap(object, "spec", "template", "spec")
	}
	containers, _ := pod["containers"].([]any)
	if err != nil || len(containers) != 1 {
		return nil, nil, nil, errors.Join(fmt.Errorf("the Deployment has %d containers, want one", len(containers)), err)
	}
	manager, ok := containers[0].(map[string]any)
	if !ok {
		return nil, nil, nil, errors.New("the Deployment's container is not one")
	}
	return deployment, pod, manager, nil
}

// defaultsOf reads the values from the only Deployment.
func defaultsOf(objects []unstructured.Unstructured) (defaults, error) {
	at := slices.IndexFunc(objects, func(o unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if at < 0 {
		return defaults{}, errors.New("the components file has no Deployment")
	}
	deployment, pod, manager, err := pod(objects[at].Object)
	if err != nil {
		return defaults{}, err
	}
	name, _ := manager["image"].(string)
	image, err := container.ImageFromString(name)
	if err != nil {
		return defaults{}, fmt.Errorf("read the image %q: %w", name, err)
	}
	repository := path.Join(image.Repository, image.Name)
	return defaults{
		Repository: repository, Reference: strings.TrimPrefix(name, repository),
		Replicas: deployment["replicas"], Resources: manager["resources"], Tolerations: pod["tolerations"],
	}, nil
}

// templates returns the templates of the provider's objects, a file for each kind.
func (p provider) templates(base []unstructured.Unstructured, others []rendered, d defaults) (map[string][]byte, error) {
	trees := make([]variant, 0, len(others))
	for _, other := range others {
		tree, err := p.tree(other.objects, d)
		if err != nil {
			return nil, err
		}
		trees = append(trees, variant{other.condition, replaceExamples(tree)})
	}
	tree, err := p.tree(base, d)
	if err != nil {
		return nil, err
	}
	all, err := merge(any(tree), trees)
	if err != nil {
		return nil, err
	}
	merged, ok := all.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the variants have nothing in common: %T", all)
	}
	printers := map[string]*printer{}
	for _, key := range slices.Sorted(maps.Keys(merged)) {
		kind, _, _ := strings.Cut(key, "/")
		file := path.Join("templates", p.folder, strings.ToLower(kind)+".yaml")
		if printers[file] == nil {
			printers[file] = &printer{}
		}
		if err := p.print(printers[file], kind, merged[key]); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	files := make(map[string][]byte, len(printers))
	for file, printer := range printers {
		files[file] = printer.out.Bytes()
	}
	return files, nil
}

func (p provider) print(out *printer, kind string, object any) error {
	var conditions []string
	if condition := kindConditions[kind]; condition != "" {
		conditions = append(conditions, condition)
	}
	if only, ok := object.(guarded); ok {
		conditions = append(conditions, only.condition)
		object = only.value
	}
	return out.document(object, conditions)
}

// tree returns objects by kind, namespace and name, with what the chart's values set of them.
func (p provider) tree(objects []unstructured.Unstructured, d defaults) (map[string]any, error) {
	tree := make(map[string]any, len(objects))
	for i := range objects {
		object := objects[i].DeepCopy()
		var err error
		switch object.GetKind() {
		case "Deployment":
			err = p.parameterize(object.Object, d)
		case "NetworkPolicy":
			err = extendEgress(object.Object)
		case "CustomResourceDefinition":
			// Without it, Helm would delete the objects of all clusters with the release.
			err = setNested(object.Object, guarded{".Values.crds.keep", "keep"}, "metadata", "annotations", "helm.sh/resource-policy")
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		tree[path.Join(object.GetKind(), object.GetNamespace(), object.GetName())] = object.Object
	}
	return tree, nil
}

// parameterize puts the chart's values into the Deployment.
func (p provider) parameterize(object map[string]any, d defaults) error {
	values := ".Values." + p.key
	deployment, pod, manager, err := pod(object)
	if err != nil {
		return err
	}
	args, ok := manager["args"].([]any)
	if !ok {
		return errors.New("the manager has no flags")
	}
	manager["args"] = append(slices.Clone(args), further(values+".extraArgs"))
	manager["image"] = text(fmt.Sprintf(
		`"{{ %[1]s.repository }}{{ with %[1]s.digest }}@{{ . }}{{ else }}{{ with %[1]s.tag }}:{{ . }}{{ else }}%[2]s{{ end }}{{ end }}"`,
		values+".image", d.Reference,
	))
	manager["imagePullPolicy"] = optional(values + ".image.pullPolicy")
	manager["resources"] = block(values + ".resources")
	pod["containers"] = []any{manager}
	pod["imagePullSecrets"] = optional(".Values.imagePullSecrets")
	pod["nodeSelector"] = optional(values + ".nodeSelector")
	pod["tolerations"] = optional(values + ".tolerations")
	pod["affinity"] = optional(values + ".affinity")
	deployment["replicas"] = text("{{ " + values + ".replicas }}")
	template, ok := deployment["template"].(map[string]any)
	if !ok {
		return errors.New("the Deployment has no template")
	}
	template["spec"] = pod
	object["spec"] = deployment
	return nil
}

// setNested sets a value of a type that YAML does not know.
func setNested(object map[string]any, value any, fields ...string) error {
	for _, field := range fields[:len(fields)-1] {
		child, ok := object[field].(map[string]any)
		if !ok {
			return fmt.Errorf("it has no %s", field)
		}
		object = child
	}
	object[fields[len(fields)-1]] = value
	return nil
}

// extendEgress lets the chart's values add to where a NetworkPolicy lets the manager out.
func extendEgress(object map[string]any) error {
	egress, found, err := unstructured.NestedSlice(object, "spec", "egress")
	if err != nil || !found {
		return errors.Join(errors.New("it has no egress"), err)
	}
	return setNested(object, append(egress, further(".Values.networkPolicy.extraEgress")), "spec", "egress")
}

// replaceExamples puts values of the chart in the places of the examples that the folders name: the namespace, and the collector of traces.
// "clusters" is a resource too, so it is replaced only below the keys that name a namespace.
func replaceExamples(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(tree))
		for key, value := range tree {
			replaced[key] = replaceExamples(replaceExample(key, value))
		}
		return replaced
	case []any:
		replaced := make([]any, len(tree))
		for i, value := range tree {
			replaced[i] = replaceExamples(value)
		}
		return replaced
	case string:
		if flag, ok := strings.CutSuffix(tree, "="+watched); ok && strings.HasPrefix(flag, "--") {
			return text(flag + "=" + watchedExpression)
		}
	}
	return tree
}

func replaceExample(key string, value any) any {
	switch {
	case value == watched && (key == "namespace" || key == corev1.LabelMetadataName):
		return text(watchedExpression)
	case value == collector:
		return text(collectorExpression)
	case value == float64(collectorPort) && key == "port":
		return text(collectorPortExpression)
	}
	return value
}
