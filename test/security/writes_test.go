// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// written is the namespace with the objects of stored, free is one without any.
	written, free = "written", "free"

	create, update, remove = "create", "update", "delete"
)

// write is something that a manager may or may not do.
type write struct {
	what   string
	verb   string
	object string // of stored
	// change is a merge patch in YAML of what is stored, for an object that is created too.
	change string
	// refusal is a part of the message; empty when the write is allowed.
	refusal string
}

// testWrites holds the writes of both managers against the policies that limit them. RBAC limits nothing here.
func testWrites(t *testing.T, api api, tools *localcontrolplane.Tools) {
	g := NewWithT(t)
	g.Expect(sandbox.ApplyPolicies(t.Context(), api.admin, tools.Root())).To(Succeed())
	for _, name := range []string{written, free} {
		g.Expect(api.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	for name := range stored {
		g.Expect(api.admin.Create(t.Context(), read(t, name))).To(Succeed(), name)
	}
	for manager, tests := range map[string]struct {
		user   string
		writes []write
	}{
		"bootstrap": {
			"system:serviceaccount:openshift-assisted-bootstrap-system:openshift-assisted-bootstrap-manager", bootstrapWrites,
		},
		"control plane": {
			"system:serviceaccount:openshift-assisted-control-plane-system:openshift-assisted-control-plane-manager", controlPlaneWrites,
		},
	} {
		api.grant(t, tests.user, everyWrite())
		cl := api.as(t, tests.user)
		// The API server acts on a policy some time after it was made.
		g.Eventually(func() error { return write{verb: remove, object: "pull-secret"}.try(t, api.admin, cl) }).WithTimeout(time.Minute).
			Should(MatchError(ContainSubstring("deletes no Secret")))
		for _, w := range tests.writes {
			t.Run(fmt.Sprintf("%s %ss %s: %s", manager, w.verb, w.object, w.what), func(t *testing.T) {
				err := w.try(t, api.admin, cl)
				if w.refusal == "" {
					NewWithT(t).Expect(err).NotTo(HaveOccurred())
				} else {
					NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("ValidatingAdmissionPolicy"), ContainSubstring(w.refusal))))
				}
				NewWithT(t).Expect(w.try(t, api.admin, api.admin)).To(Succeed(), "the policies concern the manager alone")
			})
		}
	}
}

// everyWrite is a role with everything that the policies may refuse.
func everyWrite() *rbacv1.ClusterRole {
	verbs := []string{"create", "patch", "delete"}
	return &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"secrets"}},
		{Verbs: verbs, APIGroups: []string{"metal3.io"}, Resources: []string{"baremetalhosts", "baremetalhosts/status"}},
		{Verbs: verbs, APIGroups: []string{"infrastructure.cluster.x-k8s.io"}, Resources: []string{"metal3machines", "metal3machines/status"}},
	}}
}

// try makes the API server decide on the write, and stores nothing.
func (w write) try(t *testing.T, admin, as client.Client) error {
	t.Helper()
	g := NewWithT(t)
	change := map[string]any{}
	g.Expect(yaml.Unmarshal([]byte(w.change), &change)).To(Succeed())
	object := read(t, w.object)
	switch w.verb {
	case create:
		patch(object.Object, change)
		object.SetNamespace(free)
		return as.Create(t.Context(), object, client.DryRunAll)
	case remove:
		return as.Delete(t.Context(), object, client.DryRunAll)
	}
	data, err := yaml.YAMLToJSON([]byte(w.change))
	g.Expect(err).NotTo(HaveOccurred())
	before := read(t, w.object)
	g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(before), before)).To(Succeed())
	merge := client.RawPatch(types.MergePatchType, data)
	if strings.HasPrefix(w.change, "status:") {
		err = as.Status().Patch(t.Context(), object, merge, client.DryRunAll)
	} else {
		err = as.Patch(t.Context(), object, merge, client.DryRunAll)
	}
	if err == nil {
		before.SetManagedFields(nil)
		object.SetManagedFields(nil)
		g.Expect(object.Object).NotTo(Equal(before.Object), "it changes something")
	}
	return err
}

// patch is a merge patch of an object that is not stored.
func patch(object, change map[string]any) {
	for key, value := range change {
		existing, isMap := object[key].(map[string]any)
		further, areFields := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isMap && areFields:
			patch(existing, further)
		default:
			object[key] = value
		}
	}
}

// read returns an object of stored.
func read(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(stored[name]), &object.Object)).To(Succeed())
	object.SetNamespace(written)
	return object
}

// The owners of the objects below.
const (
	ofConfig = `[{apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: OpenshiftAssistedConfig,
		name: demo-0, uid: a, controller: true}]`
	ofControlPlane = `[{apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: OpenshiftAssistedControlPlane, name: demo, uid: b}]`
	ofDeployment   = `[{apiVersion: hive.openshift.io/v1, kind: ClusterDeployment, name: demo, uid: c}]`
	ofSomebody     = `[{apiVersion: v1, kind: ConfigMap, name: demo-0, uid: d, controller: true}]`
)

// stored are the objects of a cluster called world with control plane demo, and others.
var stored = map[string]string{
	"pull-secret": `
apiVersion: v1
kind: Secret
metadata: {name: pull-secret, labels: {cluster.x-k8s.io/cluster-name: world}}
type: kubernetes.io/dockerconfigjson
data: {.dockerconfigjson: e30=}
`,
	"bootstrap data": `
apiVersion: v1
kind: Secret
metadata: {name: demo-0, labels: {cluster.x-k8s.io/cluster-name: world}, ownerReferences: ` + ofConfig + `}
type: cluster.x-k8s.io/secret
data: {value: e30=, format: aWduaXRpb24=}
`,
	"bootstrap data without owner": `
apiVersion: v1
kind: Secret
metadata: {name: demo-1}
type: cluster.x-k8s.io/secret
data: {value: e30=, format: aWduaXRpb24=, note: YQ==}
`,
	"kubeconfig": `
apiVersion: v1
kind: Secret
metadata: {name: world-kubeconfig, labels: {cluster.x-k8s.io/cluster-name: world}, ownerReferences: ` + ofControlPlane + `,
  annotations: {controlplane.cluster.x-k8s.io/kubeconfig-token: "{}"}}
type: cluster.x-k8s.io/secret
data: {value: e30=}
`,
	"kubeconfig of a user": `
apiVersion: v1
kind: Secret
metadata: {name: other-kubeconfig}
data: {value: e30=, note: YQ==}
`,
	"installer's credential": `
apiVersion: v1
kind: Secret
metadata: {name: demo-installer-credentials, labels: {cluster.x-k8s.io/cluster-name: world}, ownerReferences: ` + ofControlPlane + `}
data: {kubeconfig: e30=}
`,
	"admin kubeconfig": `
apiVersion: v1
kind: Secret
metadata: {name: demo-admin-kubeconfig, ownerReferences: ` + ofDeployment + `,
  labels: {hive.openshift.io/cluster-deployment-name: demo, hive.openshift.io/secret-type: kubeconfig}}
data: {kubeconfig: e30=}
`,
	"host": `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: host-0, labels: {rack: a}, annotations: {reboot.metal3.io: "{}", bootstrap.cluster.x-k8s.io/power-cycle: "{}"}}
spec: {online: true, bootMACAddress: "52:54:00:00:00:01", bmc: {address: "redfish://192.0.2.1/1", credentialsName: bmc}}
`,
	"machine": `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3Machine
metadata: {name: demo-0, ownerReferences: ` + ofControlPlane + `, annotations: {metal3.io/BareMetalHost: written/host-0, note: a},
  labels: {cluster.x-k8s.io/cluster-name: world, cluster.x-k8s.io/control-plane: "", rack: a}}
spec: {image: {url: "http://example.com/disk.qcow2", checksum: none, format: qcow2}, hostSelector: {matchLabels: {rack: a}}}
`,
	"worker": `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3Machine
metadata: {name: worker-0, labels: {cluster.x-k8s.io/cluster-name: world}}
spec: {image: {url: "http://example.com/disk.qcow2", checksum: none, format: qcow2}}
`,
}
