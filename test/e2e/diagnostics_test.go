// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// deployedVerbosity is what the Deployments of the managers ask for.
const deployedVerbosity = "2"

// scraper makes a ServiceAccount, lets it read metrics and set the verbosity if it should, and returns its token.
func scraper(ctx context.Context, name string, allowed bool) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	Expect(world.Client.Create(ctx, account)).To(Succeed())
	if allowed {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
				{Verbs: []string{"put"}, NonResourceURLs: []string{"/debug/flags/v"}},
			},
		}
		Expect(world.Client.Create(ctx, role)).To(Succeed())
		Expect(world.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}},
		})).To(Succeed())
	}
	request := &authenticationv1.TokenRequest{}
	Expect(world.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// scrape asks a manager for its metrics and returns the status of the answer.
func scrape(ctx context.Context, manager *localcontrolplane.Manager, token string) (int, error) {
	status, _, err := diagnose(ctx, manager, token, http.MethodGet, "/metrics", "")
	return status, err
}

// diagnose makes a request of a manager's diagnostics and returns the answer.
func diagnose(ctx context.Context, manager *localcontrolplane.Manager, token, method, path, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, manager.DiagnosticsURL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager signs its certificate itself.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	return response.StatusCode, string(said), err
}

var _ = Describe("diagnostics", func() {
	It("are shown to those whom the API server lets read them", func(ctx SpecContext) {
		allowed, stranger := scraper(ctx, "allowed", true), scraper(ctx, "stranger", false)
		for _, manager := range []*localcontrolplane.Manager{world.Bootstrap, world.ControlPlane} {
			// A manager is ready before its diagnostics are served.
			Eventually(scrape).WithArguments(ctx, manager, allowed).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Equal(http.StatusOK))
			Expect(scrape(ctx, manager, stranger)).To(Equal(http.StatusForbidden))
			Expect(scrape(ctx, manager, "")).To(Equal(http.StatusUnauthorized))
			setVerbosity := func(ctx context.Context, value, becomes string) {
				status, said, err := diagnose(ctx, manager, allowed, http.MethodPut, "/debug/flags/v", value)
				Expect(err).NotTo(HaveOccurred())
				Expect(status).To(Equal(http.StatusOK))
				Expect(strings.TrimSpace(said)).To(HaveSuffix("verbosity to " + becomes))
			}
			// The specs that follow read the logs as they were, also when one of these fails.
			DeferCleanup(setVerbosity, deployedVerbosity, deployedVerbosity)
			setVerbosity(ctx, "10", "7")
		}
	})
})
