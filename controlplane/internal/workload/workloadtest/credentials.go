// SPDX-License-Identifier: Apache-2.0

package workloadtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

var _ workload.Credentials = &Credentials{}

// Credentials is the API of an installed cluster, as far as it issues tokens and takes kubeconfigs.
type Credentials struct {
	// Now is its clock.
	Now func() time.Time
	// Cluster returns its ID; empty while its API does not answer.
	Cluster func() string
	// Lost: the ClusterCache has no connection.
	Lost bool
	// Bundle are its certificates.
	Bundle []byte
	// Verifying are the names by which its certificate verifies; all do when there are none.
	Verifying []string
	// MaxLifetime is the longest life of a token; 0 is without limit.
	MaxLifetime time.Duration
	// RequestErr is why no token is issued, and AccountErr why the ServiceAccount cannot be made.
	RequestErr, AccountErr error
	// Around makes each call that reaches the cluster; nil just calls.
	Around func(call func() error) error

	// Admin is the token in the installer's kubeconfig, which no rights are needed for.
	Admin string
	// Tokens are those that it issued and still takes; Account says that there is the ServiceAccount, and Bound that it is cluster-admin.
	Tokens         []workload.Token
	Account, Bound bool
	// Asked, Ensured and Requested count the calls; Issued counts the tokens that were ever issued.
	Asked, Ensured, Requested, Issued int
}

// DeleteAccount deletes the ServiceAccount, which revokes its tokens.
func (f *Credentials) DeleteAccount() { f.Account, f.Tokens = false, nil }

// Takes reports whether a kubeconfig is accepted: one that can be connected with, and holds the installer's token, or one that was issued,
// is valid, and still has its rights.
func (f *Credentials) Takes(kubeconfig []byte) bool {
	token, err := tokenOf(kubeconfig)
	switch {
	case err != nil || token == "":
		return false
	case token == f.Admin:
		return true
	default:
		return f.Bound && slices.ContainsFunc(f.Tokens, func(t workload.Token) bool { return t.Value == token && t.Expires.After(f.Now()) })
	}
}

// tokenOf is the token of a kubeconfig that clients can connect with.
func tokenOf(kubeconfig []byte) (string, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return "", errors.New("the kubeconfig cannot be used")
	}
	return config.BearerToken, nil
}

// Connected says what Lost does not.
func (f *Credentials) Connected(context.Context, client.ObjectKey) bool {
	return !f.Lost && f.Cluster() != ""
}

// Authorities returns Bundle while there is a connection.
func (f *Credentials) Authorities(ctx context.Context, cluster client.ObjectKey, _ workload.Subscriber) ([]byte, error) {
	if !f.Connected(ctx, cluster) {
		return nil, nil
	}
	return f.Bundle, nil
}

// AccountMissing says which of Account and Bound is not so, while there is a connection.
func (f *Credentials) AccountMissing(ctx context.Context, cluster client.ObjectKey, _ workload.Subscriber) (string, error) {
	switch {
	case !f.Connected(ctx, cluster):
		return "", nil
	case !f.Account:
		return "ServiceAccount cluster-api", nil
	case !f.Bound:
		return "its ClusterRoleBinding", nil
	default:
		return "", nil
	}
}

// Ask answers as the API server does.
func (f *Credentials) Ask(_ context.Context, _ client.ObjectKey, kubeconfig []byte, names []string) (answer workload.Answer, err error) {
	err = f.around(func() error {
		f.Asked++
		if _, err := tokenOf(kubeconfig); err != nil {
			return err
		}
		if f.Cluster() == "" {
			return errors.New("connection refused")
		}
		i := slices.IndexFunc(names, func(name string) bool { return len(f.Verifying) == 0 || slices.Contains(f.Verifying, name) })
		if i < 0 {
			answer.Seen = `a certificate of "CN=user" by "CN=user's authority"`
			return nil
		}
		answer.ServerName = names[i]
		if !f.Takes(kubeconfig) {
			answer.Refused = true
			return nil
		}
		answer.ClusterID = f.Cluster()
		return nil
	})
	return answer, err
}

// EnsureAccount returns AccountErr, and makes the ServiceAccount without one.
func (f *Credentials) EnsureAccount(_ context.Context, _ client.ObjectKey, kubeconfig []byte) error {
	return f.around(func() error {
		f.Ensured++
		switch {
		case f.AccountErr != nil:
			return f.AccountErr
		case f.Cluster() == "" || !f.Takes(kubeconfig):
			return errors.New("unauthorized")
		}
		f.Account, f.Bound = true, true
		return nil
	})
}

// RequestToken returns RequestErr, and a token without one.
func (f *Credentials) RequestToken(
	_ context.Context, _ client.ObjectKey, kubeconfig []byte, lifetime time.Duration,
) (token workload.Token, err error) {
	err = f.around(func() error {
		f.Requested++
		switch {
		case f.RequestErr != nil:
			return f.RequestErr
		case f.Cluster() == "" || !f.Takes(kubeconfig):
			return errors.New("unauthorized")
		case !f.Account:
			return errors.New("serviceaccounts \"cluster-api\" not found")
		}
		if f.MaxLifetime > 0 {
			lifetime = min(lifetime, f.MaxLifetime)
		}
		f.Issued++
		token = workload.Token{Value: fmt.Sprintf("issued-token-%d-", f.Issued), Expires: f.Now().Add(lifetime)}
		f.Tokens = append(f.Tokens, token)
		return nil
	})
	return token, err
}

func (f *Credentials) around(call func() error) error {
	if f.Around == nil {
		return call()
	}
	return f.Around(call)
}
