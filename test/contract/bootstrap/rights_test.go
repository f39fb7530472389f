// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// coreRole is the part of core's role that core itself ships; the rest is aggregated from providers.
const coreRole = "capi-manager-role"

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: verbs, Resources: resources}
}

// clientFor returns a client of a user who may do what the rules say and no more.
func (s *scene) clientFor(t *testing.T, user string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	g := NewWithT(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	g.Expect(s.Client.Create(t.Context(), role)).To(Succeed())
	s.bind(t, user, role.Name)
	kubeconfig, err := s.Management.Kubeconfig(user)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: s.Client.Scheme(), Mapper: s.Client.RESTMapper()})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// bind gives a user a role everywhere, and returns the user.
func (s *scene) bind(t *testing.T, user, role string) string {
	t.Helper()
	NewWithT(t).Expect(s.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	})).To(Succeed())
	return user
}

// expectAllowed checks, by asking the API server, that a user may do with a resource what the contract asks for.
func (s *scene) expectAllowed(t *testing.T, user, group, resource string) {
	t.Helper()
	for _, verb := range []string{"create", "delete", "get", "list", "patch", "update", "watch"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "anywhere", Verb: verb, Group: group, Resource: resource},
		}}
		// The API server's own view of the roles may be behind for a moment.
		eventually(t, func(g Gomega) {
			g.Expect(s.Client.Create(t.Context(), review)).To(Succeed())
			g.Expect(review.Status.Allowed).To(BeTrue(), "%s %s.%s", verb, resource, group)
		})
	}
}
