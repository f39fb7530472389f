// SPDX-License-Identifier: Apache-2.0

package workloadtest

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTakes: the fake takes what an API server takes, and nothing else.
func TestTakes(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &Credentials{Now: func() time.Time { return now }, Cluster: func() string { return "id" }, Admin: "admin"}
	kubeconfig := func(token string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",` +
			`"clusters":[{"name":"x","cluster":{"server":"https://api:6443"}}],` +
			`"contexts":[{"name":"x","context":{"cluster":"x","user":"u"}}],"users":[{"name":"u","user":{"token":"` + token + `"}}]}`)
	}
	admin := kubeconfig("admin")
	cluster := client.ObjectKey{Namespace: "ns", Name: "c"}
	g.Expect(f.EnsureAccount(t.Context(), cluster, admin)).To(Succeed())
	token, err := f.RequestToken(t.Context(), cluster, admin, time.Hour)
	g.Expect(err).NotTo(HaveOccurred())
	issued := kubeconfig(token.Value)
	g.Expect(f.Takes(admin)).To(BeTrue())
	g.Expect(f.Takes(issued)).To(BeTrue())
	for name, refused := range map[string][]byte{
		"nothing": nil, "garbage": []byte("secret stuff"), "no credential": kubeconfig(""), "another token": kubeconfig("another"),
		"more than a token": kubeconfig(token.Value + "x"), "a token beside a kubeconfig": []byte(token.Value),
		"no context": []byte(strings.Replace(string(issued), `"current-context":"x"`, `"current-context":"y"`, 1)),
	} {
		g.Expect(f.Takes(refused)).To(BeFalse(), name)
		g.Expect(f.EnsureAccount(t.Context(), cluster, refused)).NotTo(Succeed(), name)
	}
	_, err = f.Ask(t.Context(), cluster, []byte("secret stuff"), []string{"api"})
	g.Expect(err).To(HaveOccurred(), "nobody is asked with garbage")
	f.Admin = ""
	g.Expect(f.Takes(kubeconfig(""))).To(BeFalse(), "an installer without a token opens nothing")
	f.Admin, f.Bound = "admin", false
	g.Expect(f.Takes(issued)).To(BeFalse(), "without its rights")
	f.Bound, now = true, now.Add(time.Hour)
	g.Expect(f.Takes(issued)).To(BeFalse(), "after its end")
	g.Expect(f.Takes(admin)).To(BeTrue())
}
