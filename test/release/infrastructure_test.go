// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestInfrastructureRole: the ClusterRole that users extend is bound to the manager, collects what has the label that conditions name, and
// the ClusterRole in the guide has that label.
func TestInfrastructureRole(t *testing.T) {
	g := NewWithT(t)
	p := providers[1]
	label := map[string]string{controlplanev1.InfrastructureRoleLabel: "true"}
	objects := installed(t, p, "").Objs()
	role := &rbacv1.ClusterRole{}
	find(t, objects, "ClusterRole", p.prefix+"-infrastructure-role", role)
	g.Expect(role.AggregationRule.ClusterRoleSelectors).To(ConsistOf(metav1.LabelSelector{MatchLabels: label}))
	for _, o := range ofKind(objects, "ClusterRole") {
		if o.GetName() == role.Name {
			g.Expect(o.Object).NotTo(HaveKey("rules"), "Kubernetes owns them")
		}
	}

	binding := &rbacv1.ClusterRoleBinding{}
	find(t, objects, "ClusterRoleBinding", p.prefix+"-infrastructure-rolebinding", binding)
	g.Expect(binding.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}))
	g.Expect(binding.Subjects).
		To(ConsistOf(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace(), Name: p.prefix + "-manager"}))

	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "other-infrastructure.md"))
	g.Expect(err).NotTo(HaveOccurred())
	_, text, _ := strings.Cut(string(guide), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	example := &rbacv1.ClusterRole{}
	g.Expect(yaml.UnmarshalStrict([]byte(text), example)).To(Succeed())
	g.Expect(example.Labels).To(Equal(label))
}

// find reads one object of a components file.
func find(t *testing.T, objects []unstructured.Unstructured, kind, name string, into any) {
	t.Helper()
	g := NewWithT(t)
	for _, o := range ofKind(objects, kind) {
		if o.GetName() == name {
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)).To(Succeed())
			return
		}
	}
	t.Fatalf("the components have no %s %s", kind, name)
}
