// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/monitoring/scraped"
)

// scrapersRole is what Kubernetes has for those who read metrics.
const scrapersRole = "system:monitoring"

// Scrape is what both managers served at one time, as text and as metrics.
type Scrape struct {
	BootstrapText, ControlPlaneText []byte
	Bootstrap, ControlPlane         scraped.Metrics
}

// Scrape reads the metrics of both managers as Prometheus does: with the token of a ServiceAccount that may. It leaves nothing behind.
func (w *World) Scrape(ctx context.Context) (scrape Scrape, err error) {
	token, remove, err := w.scraper(ctx)
	if err != nil {
		return scrape, err
	}
	defer remove()
	if scrape.BootstrapText, scrape.Bootstrap, err = w.scrape(ctx, w.Bootstrap, token); err != nil {
		return scrape, err
	}
	scrape.ControlPlaneText, scrape.ControlPlane, err = w.scrape(ctx, w.ControlPlane, token)
	return scrape, err
}

// scraper makes a ServiceAccount that may read metrics, and returns a token of it and what removes it.
func (w *World) scraper(ctx context.Context) (token string, remove func(), err error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "scraper-"}}
	if err := w.Client.Create(ctx, account); err != nil {
		return "", nil, fmt.Errorf("cannot create a ServiceAccount that reads metrics: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: scrapersRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	remove = func() {
		for _, o := range []client.Object{binding, account} {
			_ = w.Client.Delete(context.WithoutCancel(ctx), o) // At worst it is there until the World ends.
		}
	}
	if err := w.Client.Create(ctx, binding); err != nil {
		remove()
		return "", nil, fmt.Errorf("cannot let a ServiceAccount read metrics: %w", err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := w.Client.SubResource("token").Create(ctx, account, request); err != nil {
		remove()
		return "", nil, fmt.Errorf("cannot get a token that reads metrics: %w", err)
	}
	// A manager remembers for a while that somebody may not, so the API server is asked first.
	err = pollUntil(ctx, settleTimeout, "the right to read metrics", func(ctx context.Context) (string, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  "system:serviceaccount:" + account.Namespace + ":" + account.Name,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}
		if err := w.Client.Create(ctx, review); err != nil {
			return "", fmt.Errorf("cannot ask who may read metrics: %w", err)
		}
		if !review.Status.Allowed {
			return "not yet", nil
		}
		return "", nil
	})
	if err != nil {
		remove()
		return "", nil, err
	}
	return request.Status.Token, remove, nil
}

// scrape reads the metrics of a manager, which may be ready before its diagnostics are served.
func (w *World) scrape(
	ctx context.Context, manager *localcontrolplane.Manager, token string,
) (text []byte, metrics scraped.Metrics, err error) {
	// The manager signs its certificate itself.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	httpClient := &http.Client{Transport: transport}
	err = pollUntil(ctx, settleTimeout, "the metrics of "+manager.Name(), func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, manager.DiagnosticsURL+"/metrics", http.NoBody)
		if err != nil {
			return "", fmt.Errorf("cannot ask for metrics: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := httpClient.Do(request)
		if err != nil {
			return err.Error(), nil
		}
		defer response.Body.Close()
		if text, err = io.ReadAll(response.Body); err != nil {
			return "", fmt.Errorf("cannot read the metrics of %s: %w", manager.Name(), err)
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Sprintf("%s answers %s: %s", manager.Name(), response.Status, text), nil
		}
		return "", nil
	})
	if err != nil {
		return nil, nil, err
	}
	metrics, err = scraped.Parse(text)
	return text, metrics, err
}
