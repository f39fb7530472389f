// SPDX-License-Identifier: Apache-2.0

// Package security compares what the managers may do with what they do. The roles that are bound to a manager are read from the API server,
// its requests from the audit log. A Record sums up several worlds; what is left over in its comparison is a verb too many or too few.
package security

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// Permission is what a rule allows and what a request needs. Its String is "patch machines/status.cluster.x-k8s.io".
type Permission struct {
	// Verb is one of the API's verbs, such as get.
	Verb string
	// Resource is the plural name of a kind, with the subresource if there is one.
	Resource string
	// Group is the API group; the core group is empty.
	Group string
}

func (p Permission) String() string {
	return strings.TrimSuffix(p.Verb+" "+p.Resource+"."+p.Group, ".")
}

// Record is what managers may do and what they did, by the name of the manager.
type Record map[string]*usage

type usage struct {
	granted, used sets.Set[Permission]
	// refused are requests that the API server refused, wide what a rule allows beyond single verbs on single resources.
	refused, wide sets.Set[string]
}

// Add records what a manager may do and what it did until now. user is its name in the audit log, system:serviceaccount:NAMESPACE:NAME.
func (r Record) Add(ctx context.Context, c client.Reader, auditLog, manager, user string) error {
	if r[manager] == nil {
		r[manager] = &usage{granted: sets.New[Permission](), used: sets.New[Permission](), refused: sets.New[string](), wide: sets.New[string]()}
	}
	u := r[manager]
	rules, err := rulesOf(ctx, c, user)
	if err != nil {
		return err
	}
	u.grant(rules)
	return sandbox.ReadAudit(auditLog, func(event *auditv1.Event) {
		if event.User.Username == user {
			u.see(event)
		}
	})
}

// Missing lists, sorted, the requests that the API server refused a manager.
func (r Record) Missing() []string {
	var lines []string
	for manager, u := range r {
		for request := range u.refused {
			lines = append(lines, manager+": may not "+request)
		}
	}
	slices.Sort(lines)
	return lines
}

// Excess lists, sorted, what a manager may do and never did, but for what the API server asks for without a request (Enforced) and what is
// done now and then (Occasional); and rules that are wider than verbs on resources, or there twice.
func (r Record) Excess() []string {
	var lines []string
	for manager, u := range r {
		for permission := range u.granted.Difference(u.used) {
			if !u.excused(manager, permission) {
				lines = append(lines, manager+": may "+permission.String()+" and never does")
			}
		}
		for rule := range u.wide {
			lines = append(lines, manager+": may "+rule)
		}
	}
	slices.Sort(lines)
	return lines
}

// excused reports whether a manager needs a permission that it did not use. Who watches has to be able to list: a cache falls back to it
// when the API server does not stream what is there already.
func (u *usage) excused(manager string, permission Permission) bool {
	watch := permission
	watch.Verb = "watch"
	return permission.Verb == "list" && u.used.Has(watch) ||
		slices.ContainsFunc(slices.Concat(Enforced[manager], Occasional[manager]), func(e Enforcement) bool { return e.Permission == permission })
}

// grant adds what rules allow.
func (u *usage) grant(rules []rbacv1.PolicyRule) {
	here := sets.New[Permission]()
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			u.wide.Insert(fmt.Sprintf("%v the paths %v", rule.Verbs, rule.NonResourceURLs))
		}
		for _, permission := range permissionsOf(rule) {
			if strings.Contains(permission.String(), rbacv1.VerbAll) {
				u.wide.Insert(permission.String() + ", a wildcard")
			}
			if here.Has(permission) {
				u.wide.Insert(permission.String() + " by two rules")
			}
			here.Insert(permission)
		}
	}
	u.granted = u.granted.Union(here)
}

func permissionsOf(rule rbacv1.PolicyRule) []Permission {
	var permissions []Permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				permissions = append(permissions, Permission{Verb: verb, Resource: resource, Group: group})
			}
		}
	}
	return permissions
}

// deniedByPolicy is in what the API server answers to a request that an admission policy refuses.
const deniedByPolicy = "ValidatingAdmissionPolicy"

// see adds what a request of the manager needed, or that it was refused. A refusal is one of RBAC's or of the admission of owner
// references, which both mean that a role lacks something, or one of an admission policy, which then lacks a write of the manager.
func (u *usage) see(event *auditv1.Event) {
	if event.ObjectRef == nil {
		return // Discovery, which every authenticated user may do.
	}
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	permission := Permission{Verb: event.Verb, Resource: resource, Group: event.ObjectRef.APIGroup}
	status := event.ResponseStatus
	if status != nil && (status.Code == http.StatusForbidden || strings.Contains(status.Message, deniedByPolicy)) {
		u.refused.Insert(
			fmt.Sprintf("%s: %s", permission, cmp.Or(status.Message, event.Annotations["authorization.k8s.io/reason"])),
		)
		return
	}
	u.used.Insert(permission)
}

// rulesOf returns the rules of every role that is bound to a ServiceAccount.
func rulesOf(ctx context.Context, c client.Reader, user string) ([]rbacv1.PolicyRule, error) {
	namespace, name, err := serviceaccount.SplitUsername(user)
	if err != nil {
		return nil, fmt.Errorf("user %q is no ServiceAccount: %w", user, err)
	}
	bound := func(subjects []rbacv1.Subject) bool {
		return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	clusterBindings, bindings := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	for _, list := range []client.ObjectList{clusterBindings, bindings} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list the bindings of %s: %w", user, err)
		}
	}
	var rules []rbacv1.PolicyRule
	for _, binding := range clusterBindings.Items {
		if bound(binding.Subjects) {
			role, err := readRules(ctx, c, binding.RoleRef, "")
			if err != nil {
				return nil, fmt.Errorf("follow ClusterRoleBinding %s: %w", binding.Name, err)
			}
			rules = append(rules, role...)
		}
	}
	for _, binding := range bindings.Items {
		if bound(binding.Subjects) {
			role, err := readRules(ctx, c, binding.RoleRef, binding.Namespace)
			if err != nil {
				return nil, fmt.Errorf("follow RoleBinding %s/%s: %w", binding.Namespace, binding.Name, err)
			}
			rules = append(rules, role...)
		}
	}
	return rules, nil
}

// readRules returns the rules of the role that a binding in a namespace refers to.
func readRules(ctx context.Context, c client.Reader, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "ClusterRole" {
		role := &rbacv1.ClusterRole{}
		err := c.Get(ctx, client.ObjectKey{Name: ref.Name}, role)
		return role.Rules, err
	}
	role := &rbacv1.Role{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, role)
	return role.Rules, err
}
