// SPDX-License-Identifier: Apache-2.0

package security

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestContractRoles holds the roles of the release, and core's, against a real API server that protects owner references as OpenShift's
// does.
func TestContractRoles(t *testing.T) {
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(cp.Stop()).To(Succeed()) }()
	g.Expect(cp.InstallCRDs(t.Context(), localcontrolplane.AllCRDs()...)).To(Succeed())
	api := api{admin: newClient(t, cp.Admin()), config: cp.Admin()}

	t.Run("BOOT-6 CP-4 CTL-18 core's own role lets core handle our kinds", func(t *testing.T) {
		g := NewWithT(t)
		dir, err := cp.Tools().ModuleDir(t.Context(), "sigs.k8s.io/cluster-api")
		g.Expect(err).NotTo(HaveOccurred())
		api.grant(t, "core", readRole(t, filepath.Join(dir, "core", "config", "rbac", "role.yaml")))
		for resource, group := range map[string]string{
			"openshiftassistedconfigs": bootstrapv1.GroupVersion.Group, "openshiftassistedconfigtemplates": bootstrapv1.GroupVersion.Group,
			"openshiftassistedcontrolplanes":         controlplanev1.GroupVersion.Group,
			"openshiftassistedcontrolplanetemplates": controlplanev1.GroupVersion.Group,
		} {
			for _, verb := range []string{"create", "delete", "get", "list", "patch", "update", "watch"} {
				permission := Permission{Verb: verb, Resource: resource, Group: group}
				g.Expect(api.allows(t, "core", permission)).To(BeTrue(), "%s", permission)
				g.Expect(api.allows(t, "somebody", permission)).To(BeFalse(), "%s", permission)
			}
		}
	})
	t.Run("BOOT-7 with the managers' roles owners can be set, and without a verb that is there for that they cannot", func(t *testing.T) {
		for manager, enforced := range Enforced {
			role := readRole(t, filepath.Join("..", "..", "config", manager, "rbac", "role.yaml"))
			api.grant(t, manager, role)
			for _, e := range enforced {
				g := NewWithT(t)
				lacking := strings.NewReplacer(" ", "-", "/", "-").Replace(manager + " without " + e.String())
				api.grant(t, lacking, without(role, e.Permission))
				g.Expect(setOwner(t, api.admin, api.as(t, manager), e)).To(Succeed(), "%s must %s to %s", manager, e, e.Why)
				err := setOwner(t, api.admin, api.as(t, lacking), e)
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", lacking, err)
				g.Expect(err).To(MatchError(ContainSubstring("cannot set")), lacking)
			}
		}
	})
	t.Run("a labelled ClusterRole extends what the control plane manager may do with infrastructure", func(t *testing.T) {
		g := NewWithT(t)
		const user = "infrastructure"
		role := readRole(t, filepath.Join("..", "..", "config", "controlplane", "rbac", "infrastructure_role.yaml"))
		g.Expect(role.Rules).To(BeEmpty())
		api.bind(t, user, role)
		created := Permission{Verb: "create", Resource: "examplemachines", Group: "infrastructure.cluster.x-k8s.io"}
		g.Expect(api.allows(t, user, created)).To(BeFalse())
		extension := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "extension", Labels: map[string]string{controlplanev1.InfrastructureRoleLabel: "true"}},
			Rules: []rbacv1.PolicyRule{
				{Verbs: []string{created.Verb}, Resources: []string{created.Resource}, APIGroups: []string{created.Group}},
			},
		}
		g.Expect(api.admin.Create(t.Context(), extension)).To(Succeed())
		g.Eventually(func() bool { return api.allows(t, user, created) }).WithTimeout(time.Minute).Should(BeTrue())
	})
	t.Run("a manager for one namespace has what is not namespaced of its role, and no more", func(t *testing.T) {
		for manager := range Enforced {
			var want, got []Permission
			for _, rule := range readRole(t, filepath.Join("..", "..", "config", manager, "rbac", "role.yaml")).Rules {
				want = append(want, slices.DeleteFunc(permissionsOf(rule), func(p Permission) bool { return isNamespaced(t, api.admin, p) })...)
			}
			for _, rule := range readRole(t, filepath.Join("..", "..", "config", manager, "namespaced", "cluster_role.yaml")).Rules {
				got = append(got, permissionsOf(rule)...)
			}
			NewWithT(t).Expect(got).To(ConsistOf(want), manager)
		}
	})
	// Last: the policies would refuse what is tried above as a manager. The owners of the objects that are written do not exist: the garbage
	// collector would delete these objects between one write and the next.
	t.Run("admission policies narrow what the managers write", func(t *testing.T) {
		NewWithT(t).Expect(cp.Kill("kube-controller-manager")).To(Succeed())
		testWrites(t, api, cp.Tools())
	})
}

// isNamespaced reports whether a permission is for objects in namespaces.
func isNamespaced(t *testing.T, c client.Client, p Permission) bool {
	t.Helper()
	g := NewWithT(t)
	if p.Group == configv1.GroupName {
		return false // A management cluster need not be OpenShift. All of its configuration is of the cluster.
	}
	resource, _, _ := strings.Cut(p.Resource, "/")
	kind, err := c.RESTMapper().KindFor(schema.GroupVersionResource{Group: p.Group, Resource: resource})
	g.Expect(err).NotTo(HaveOccurred())
	namespaced, err := apiutil.IsGVKNamespaced(kind, c.RESTMapper())
	g.Expect(err).NotTo(HaveOccurred())
	return namespaced
}

// setOwner makes a request as a manager that needs a permission: the owner of an object that it may delete, or one whose deletion it
// blocks.
func setOwner(t *testing.T, admin, manager client.Client, e Enforcement) error {
	t.Helper()
	g := NewWithT(t)
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "owned-"}
	if owner, ok := strings.CutSuffix(e.Resource, "/finalizers"); ok {
		kind, err := admin.RESTMapper().KindFor(schema.GroupVersionResource{Group: e.Group, Resource: owner})
		g.Expect(err).NotTo(HaveOccurred())
		secret := &corev1.Secret{ObjectMeta: meta}
		secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "owner", UID: "uid"}, kind)}
		return manager.Create(t.Context(), secret, client.DryRunAll)
	}
	var owned client.Object = &corev1.Secret{ObjectMeta: meta}
	if e.Resource != "secrets" {
		template := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(machineTemplate), &template.Object)).To(Succeed())
		owned = template
	}
	g.Expect(admin.Create(t.Context(), owned)).To(Succeed())
	before := owned.DeepCopyObject().(client.Object)
	owned.SetOwnerReferences(
		[]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "owner", UID: "uid"}},
	)
	return manager.Patch(t.Context(), owned, client.MergeFrom(before), client.DryRunAll)
}

const machineTemplate = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3MachineTemplate
metadata: {namespace: default, generateName: owned-}
spec: {template: {spec: {image: {url: "http://example.com/image.iso", checksum: "none", format: live-iso}}}}
`

// api is an API server under test.
type api struct {
	admin  client.Client
	config *rest.Config
}

// as returns a client that acts for a user.
func (a api) as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return newClient(t, config)
}

// grant gives a role to a user, and waits until it is in force.
func (a api) grant(t *testing.T, user string, role *rbacv1.ClusterRole) {
	t.Helper()
	a.bind(t, user, role)
	// The API server's authorizer reads roles from a cache.
	rule := role.Rules[len(role.Rules)-1]
	last := Permission{Verb: rule.Verbs[0], Resource: rule.Resources[0], Group: rule.APIGroups[0]}
	NewWithT(t).Eventually(func() bool { return a.allows(t, user, last) }).WithTimeout(time.Minute).Should(BeTrue())
}

// bind creates a role under the name of a user and binds it to the user.
func (a api) bind(t *testing.T, user string, role *rbacv1.ClusterRole) {
	t.Helper()
	g := NewWithT(t)
	role = role.DeepCopy()
	role.Name = user
	g.Expect(a.admin.Create(t.Context(), role)).To(Succeed())
	g.Expect(a.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}

// allows asks the API server whether a user may do something in any namespace.
func (a api) allows(t *testing.T, user string, p Permission) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(p.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: subresource}}}
	NewWithT(t).Expect(a.admin.Create(t.Context(), review)).To(Succeed())
	return review.Status.Allowed
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// readRole reads the first ClusterRole of a file.
func readRole(t *testing.T, path string) *rbacv1.ClusterRole {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	g.Expect(yaml.Unmarshal(data, role)).To(Succeed())
	g.Expect(role.Kind).To(Equal("ClusterRole"), path)
	role.Labels = nil
	return role
}

// without returns a role that lacks one permission.
func without(role *rbacv1.ClusterRole, p Permission) *rbacv1.ClusterRole {
	lacking := &rbacv1.ClusterRole{}
	for _, rule := range role.Rules {
		for _, permission := range permissionsOf(rule) {
			if permission != p {
				lacking.Rules = append(lacking.Rules, rbacv1.PolicyRule{
					Verbs: []string{permission.Verb}, APIGroups: []string{permission.Group}, Resources: []string{permission.Resource}})
			}
		}
	}
	return lacking
}
