// SPDX-License-Identifier: Apache-2.0

package security

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const user = "system:serviceaccount:system:manager"

// bound returns a ClusterRole in force everywhere and a Role in force in one namespace, with their bindings to the user.
func bound(cluster, namespaced rbacv1.PolicyRule) []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "system", Name: "manager"}}
	named, inNamespace := metav1.ObjectMeta{Name: "role"}, metav1.ObjectMeta{Namespace: "system", Name: "role"}
	other := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Rules: []rbacv1.PolicyRule{rule("delete", "nodes")}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{cluster}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "role"}},
		&rbacv1.Role{ObjectMeta: inNamespace, Rules: []rbacv1.PolicyRule{namespaced}},
		&rbacv1.RoleBinding{ObjectMeta: inNamespace, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "role"}},
		&other,
		&rbacv1.ClusterRoleBinding{ObjectMeta: other.ObjectMeta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "other"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "system", Name: "somebody"}}},
	}
}

func rule(verb, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}}
}

// requested is the audit event of a request.
func requested(who, verb, resource, subresource string, code int32) auditv1.Event {
	event := auditv1.Event{Verb: verb, ObjectRef: &auditv1.ObjectReference{Resource: resource, Subresource: subresource},
		ResponseStatus: &metav1.Status{Code: code, Message: "why"}}
	event.User.Username = who
	return event
}

// denied is the audit event of a request that an admission policy refuses, as an object that is not valid.
func denied(verb, resource string) auditv1.Event {
	event := requested(user, verb, resource, "", http.StatusUnprocessableEntity)
	event.ResponseStatus.Message = "ValidatingAdmissionPolicy 'writes' denied request: why"
	return event
}

func TestRecord(t *testing.T) {
	used := []auditv1.Event{
		requested(user, "patch", "pods", "status", http.StatusOK),
		requested(user, "update", "leases", "", http.StatusConflict),
		requested("somebody", "delete", "nodes", "", http.StatusForbidden),
	}
	tests := []struct {
		name            string
		cluster         rbacv1.PolicyRule
		namespaced      rbacv1.PolicyRule
		events          []auditv1.Event
		missing, excess []string
	}{
		{name: "roles that fit", cluster: rule("patch", "pods/status"), namespaced: rule("update", "leases"), events: used},
		{
			name:       "a verb too many",
			cluster:    rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch", "get"}},
			namespaced: rule("update", "leases"), events: used, excess: []string{"test: may get pods/status and never does"},
		},
		{name: "a verb that another subresource uses", cluster: rule("patch", "pods"), namespaced: rule("update", "leases"), events: used,
			excess: []string{"test: may patch pods and never does"}},
		{
			name:    "a list for a cache that watches",
			cluster: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"list", "watch"}},
			events:  append(used, requested(user, "watch", "pods", "", http.StatusOK)), namespaced: rule("update", "leases"),
			excess: []string{"test: may list nodes and never does", "test: may watch nodes and never does"},
		},
		{name: "a verb too few", cluster: rule("patch", "pods/status"), namespaced: rule("update", "leases"),
			events: append(used, requested(user, "get", "secrets", "", http.StatusForbidden)), missing: []string{"test: may not get secrets: why"}},
		{name: "what an admission policy refuses", cluster: rule("patch", "pods/status"), namespaced: rule("update", "leases"),
			events:  append(used, denied("patch", "secrets")),
			missing: []string{`test: may not patch secrets: ValidatingAdmissionPolicy 'writes' denied request: why`}},
		{name: "a wildcard", cluster: rule("patch", "*"), namespaced: rule("update", "leases"), events: used,
			excess: []string{"test: may patch * and never does", "test: may patch *, a wildcard"}},
		{name: "a rule that is there twice", cluster: rule("update", "leases"), namespaced: rule("update", "leases"), events: used,
			excess: []string{"test: may update leases by two rules"}},
		{
			name: "a path", cluster: rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
			namespaced: rule("update", "leases"), events: used, excess: []string{"test: may [get] the paths [/metrics]"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			log := filepath.Join(t.TempDir(), "audit.log")
			var lines []byte
			for i := range tt.events {
				line, err := json.Marshal(tt.events[i])
				g.Expect(err).NotTo(HaveOccurred())
				lines = append(append(lines, line...), '\n')
			}
			g.Expect(os.WriteFile(log, lines, 0o600)).To(Succeed())
			c := fake.NewClientBuilder().WithObjects(bound(tt.cluster, tt.namespaced)...).Build()
			record := Record{}
			g.Expect(record.Add(t.Context(), c, log, "test", user)).To(Succeed())
			g.Expect(record.Add(t.Context(), c, log, "test", user)).To(Succeed(), "a second world changes nothing")
			g.Expect(record.Missing()).To(Equal(tt.missing))
			g.Expect(record.Excess()).To(Equal(tt.excess))
		})
	}
}

// TestEnforced: a permission that only the admission of owner references asks for counts as used.
func TestEnforced(t *testing.T) {
	g := NewWithT(t)
	log := filepath.Join(t.TempDir(), "audit.log")
	g.Expect(os.WriteFile(log, nil, 0o600)).To(Succeed())
	c := fake.NewClientBuilder().WithObjects(bound(rule("delete", "secrets"), rule("get", "secrets"))...).Build()
	record := Record{}
	g.Expect(record.Add(t.Context(), c, log, "bootstrap", user)).To(Succeed())
	g.Expect(record.Excess()).To(Equal([]string{"bootstrap: may get secrets and never does"}))
}
