// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster/patches/inline"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// The templates of the class, by what is made of them.
const (
	infraCluster        = "cluster"
	controlPlane        = "control plane"
	controlPlaneMachine = "control-plane machine"
	worker              = "worker config"
	workerMachine       = "worker machine"
)

// uses are where a Cluster uses the templates, in Cluster API's words.
var uses = map[string]struct{ kind, name, holder, fieldPath string }{
	infraCluster: {"Metal3ClusterTemplate", "openshift-assisted", "Cluster", "spec.infrastructureRef"},
	controlPlane: {"OpenshiftAssistedControlPlaneTemplate", "openshift-assisted", "Cluster", "spec.controlPlaneRef"},
	controlPlaneMachine: {
		"Metal3MachineTemplate", "openshift-assisted-control-plane", "OpenshiftAssistedControlPlane",
		"spec.machineTemplate.spec.infrastructureRef",
	},
	worker: {
		"OpenshiftAssistedConfigTemplate", "openshift-assisted-worker", "MachineDeployment", "spec.template.spec.bootstrap.configRef",
	},
	workerMachine: {"Metal3MachineTemplate", "openshift-assisted-worker", "MachineDeployment", "spec.template.spec.infrastructureRef"},
}

// rendered are the specs of the templates, by the names above.
type rendered map[string]map[string]any

// renderedVersion is the Kubernetes version of the control plane, unless a test says another one.
const renderedVersion = "v1.33.4"

// render gives the variables, of YAML values, to the class, as a Cluster's topology does.
func render(t *testing.T, values map[string]string) rendered {
	t.Helper()
	specs, err := renderAt(t, renderedVersion, values)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return specs
}

// renderAt renders with a Kubernetes version of the control plane: Cluster API's own code checks the variables, adds defaults and makes the
// patches. The error is that of a patch.
func renderAt(t *testing.T, version string, values map[string]string) (rendered, error) {
	t.Helper()
	g := NewWithT(t)
	class := class(t)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	for name, value := range values {
		raw, err := yaml.YAMLToJSON([]byte(value))
		g.Expect(err).NotTo(HaveOccurred(), name)
		variable := clusterv1.ClusterVariable{Name: name}
		variable.Value.Raw = raw
		cluster.Spec.Topology.Variables = append(cluster.Spec.Topology.Variables, variable)
	}
	slices.SortFunc(cluster.Spec.Topology.Variables, func(a, b clusterv1.ClusterVariable) int { return strings.Compare(a.Name, b.Name) })
	g.Expect((&admission.Cluster{}).DefaultAndValidateVariables(t.Context(), cluster, nil, class)).To(BeEmpty())

	request := requestFor(t, version, cluster.Spec.Topology.Variables)
	for i := range class.Spec.Patches {
		response, err := inline.NewGenerator(&class.Spec.Patches[i]).Generate(t.Context(), cluster, request)
		if err != nil {
			return nil, fmt.Errorf("patch %s: %w", class.Spec.Patches[i].Name, err)
		}
		for _, item := range response.Items {
			g.Expect(patch(request, item)).To(Succeed(), "patch %s of %s", class.Spec.Patches[i].Name, item.UID)
		}
	}
	specs := rendered{}
	for i := range request.Items {
		spec, _, err := unstructured.NestedMap(request.Items[i].Object.Object.(*unstructured.Unstructured).Object, "spec", "template", "spec")
		g.Expect(err).NotTo(HaveOccurred())
		specs[string(request.Items[i].UID)] = spec
	}
	return specs, nil
}

// requestFor asks for the patches of all templates, with the variables that Cluster API adds and the class uses.
func requestFor(t *testing.T, version string, variables []clusterv1.ClusterVariable) *runtimehooksv1.GeneratePatchesRequest {
	t.Helper()
	g := NewWithT(t)
	_, body := read(t, classFile)
	objects, err := utilyaml.ToUnstructured([]byte(body))
	g.Expect(err).NotTo(HaveOccurred())
	request := &runtimehooksv1.GeneratePatchesRequest{}
	for _, variable := range variables {
		request.Variables = append(request.Variables, runtimehooksv1.Variable{Name: variable.Name, Value: variable.Value})
	}
	for name, use := range uses {
		at := slices.IndexFunc(objects, func(o unstructured.Unstructured) bool { return o.GetKind() == use.kind && o.GetName() == use.name })
		g.Expect(at).NotTo(Equal(-1), name)
		item := runtimehooksv1.GeneratePatchesRequestItem{
			UID: types.UID(name), HolderReference: runtimehooksv1.HolderReference{Kind: use.holder, FieldPath: use.fieldPath},
		}
		item.Object.Object = &objects[at]
		builtin := runtimehooksv1.Variable{Name: "builtin"}
		switch name {
		case worker, workerMachine:
			builtin.Value.Raw = []byte(`{"machineDeployment":{"class":"worker"}}`)
			item.Variables = append(item.Variables, builtin)
		case controlPlane, controlPlaneMachine:
			builtin.Value.Raw = fmt.Appendf(nil, `{"controlPlane":{"version":%q}}`, version)
			item.Variables = append(item.Variables, builtin)
		}
		request.Items = append(request.Items, item)
	}
	return request
}

// patch applies a JSON patch of what the class has: add and replace, of fields of objects.
func patch(request *runtimehooksv1.GeneratePatchesRequest, item runtimehooksv1.GeneratePatchesResponseItem) error {
	var steps []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(item.Patch, &steps); err != nil {
		return err
	}
	at := slices.IndexFunc(request.Items, func(i runtimehooksv1.GeneratePatchesRequestItem) bool { return i.UID == item.UID })
	for _, step := range steps {
		parent := request.Items[at].Object.Object.(*unstructured.Unstructured).Object
		parts := strings.Split(strings.TrimPrefix(step.Path, "/"), "/")
		for _, part := range parts[:len(parts)-1] {
			next, ok := parent[part].(map[string]any)
			if !ok {
				return fmt.Errorf("%s: there is no %s", step.Path, part)
			}
			parent = next
		}
		last := parts[len(parts)-1]
		if _, exists := parent[last]; step.Op != "add" && (step.Op != "replace" || !exists) {
			return fmt.Errorf("cannot %s %s", step.Op, step.Path)
		}
		parent[last] = step.Value
	}
	return nil
}
