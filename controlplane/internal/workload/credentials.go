// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/connection"
	kubeconfigs "github.com/capi-openshift/agent-providers/controlplane/internal/kubeconfig"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// Whose token it is that Cluster API connects to an installed cluster with (DESIGN D34). Who deletes the ServiceAccount revokes every
// token.
const (
	AccountNamespace = "openshift-assisted-capi"
	AccountName      = "cluster-api"

	// accountBinding is the ClusterRoleBinding that makes it cluster-admin.
	accountBinding = "openshift-assisted-capi"
	// fieldManager is who applies these objects.
	fieldManager = "openshift-assisted-control-plane-manager"

	// authoritiesNamespace and authoritiesName are the ConfigMap with all certificates by which the serving certificates of kube-apiserver are
	// verified, whatever name it is called by.
	authoritiesNamespace = "openshift-config-managed"
	authoritiesName      = "kube-apiserver-server-ca"
	authoritiesKey       = "ca-bundle.crt"

	// requestTimeout bounds one request that is not made through the ClusterCache.
	requestTimeout = 10 * time.Second
	// tokenAttempts is how often a token is requested before another credential is used: one failure may be that of one API server. Each
	// attempt makes a connection of its own, which a load balancer may lead to another API server.
	tokenAttempts = 2
	// extendedLifetime is a lifetime that API servers make another of.
	extendedLifetime = 3607
)

// Credentials issues the tokens that others connect to an installed cluster with. It calls the cluster with the kubeconfig that it is
// given, since the connection of the ClusterCache is the one that may be lost.
type Credentials interface {
	// Connected reports whether the ClusterCache has a connection, or has not tried to make one yet: then nothing says that the cluster
	// refuses a credential. When the first attempt has failed, the ClusterCache wakes who has its GetClusterSource.
	Connected(ctx context.Context, cluster client.ObjectKey) bool
	// Authorities reads the certificates by which the cluster's API servers are verified, as PEM, and lets every later change of them wake the
	// subscriber. They are empty without an error when there is no connection, or when the cluster does not tell them.
	Authorities(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) ([]byte, error)
	// AccountMissing names what the connection's cache shows to be missing of the ServiceAccount and of the ClusterRoleBinding that makes it
	// cluster-admin, and lets their deletion wake the subscriber. Without a connection nothing is missing.
	AccountMissing(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (string, error)
	// Ask asks the cluster now whether it takes a kubeconfig, and by which of the names its certificate verifies. An error is that it does not
	// answer, which is remembered for a while.
	Ask(ctx context.Context, cluster client.ObjectKey, kubeconfig []byte, names []string) (Answer, error)
	// EnsureAccount makes the ServiceAccount, and makes it cluster-admin.
	EnsureAccount(ctx context.Context, cluster client.ObjectKey, kubeconfig []byte) error
	// RequestToken returns a new token of the ServiceAccount. It fails when the cluster has given none twice.
	RequestToken(ctx context.Context, cluster client.ObjectKey, kubeconfig []byte, lifetime time.Duration) (Token, error)
}

// Token is a token of the ServiceAccount.
type Token struct {
	Value string
	// Expires is when it ends, as the cluster says: earlier than asked for, if the cluster allows no token to live so long.
	Expires time.Time
}

// String keeps the token out of logs.
func (t Token) String() string { return "token until " + t.Expires.UTC().Format(time.RFC3339) }

// GoString keeps the token out of logs.
func (t Token) GoString() string { return t.String() }

// Connected reports whether reads of the cluster go anywhere, or nobody knows yet. Without the latter, a manager that starts would ask
// thousands of clusters by a connection each, just before it connects to them.
func (c Cached) Connected(ctx context.Context, cluster client.ObjectKey) bool {
	_, err := c.Cache.GetReader(ctx, cluster)
	return err == nil || c.Cache.GetHealthCheckingState(ctx, cluster).LastProbeTime.IsZero()
}

// Authorities reads from the connection's cache, which holds no other ConfigMap (kinds).
func (c Cached) Authorities(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) ([]byte, error) {
	all := func(client.Object) bool { return true }
	watch := subscriber.to("configmaps", &corev1.ConfigMap{}, all).Resting(subscriber.Waits)
	remote, err := c.watched(ctx, cluster, "ConfigMaps", watch)
	if err != nil || remote == nil {
		return nil, err
	}
	bundle := &corev1.ConfigMap{}
	err = remote.Get(ctx, client.ObjectKey{Namespace: authoritiesNamespace, Name: authoritiesName}, bundle)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s of Cluster %s: %w", authoritiesNamespace, authoritiesName, cluster, err)
	}
	return []byte(bundle.Data[authoritiesKey]), nil
}

// AccountMissing is how a deletion is learned of: the ClusterCache may be connected with another credential than the one that others use by
// now, and a token without the ClusterRoleBinding is still known to the cluster, which forbids it everything. The watch of the
// ServiceAccount goes on, by which tokens are revoked.
func (c Cached) AccountMissing(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (string, error) {
	missing, err := c.accountMissing(ctx, cluster, subscriber)
	if missing == "" || subscriber.Waits {
		return missing, err
	}
	subscriber.Waits = true // What was read of the ClusterRoleBinding may be a minute old, and both are about to be made.
	return c.accountMissing(ctx, cluster, subscriber)
}

func (c Cached) accountMissing(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (string, error) {
	ours := func(name string) func(client.Object) bool {
		return func(o client.Object) bool { return o.GetName() == name }
	}
	accounts := subscriber.to("serviceaccounts", &corev1.ServiceAccount{}, ours(AccountName))
	remote, err := c.watched(ctx, cluster, "ServiceAccounts", accounts)
	if err != nil || remote == nil {
		return "", err
	}
	bindings := subscriber.to("clusterrolebindings", &rbacv1.ClusterRoleBinding{}, ours(accountBinding)).Resting(subscriber.Waits)
	if remote, err = c.watched(ctx, cluster, "ClusterRoleBindings", bindings); err != nil || remote == nil {
		return "", err
	}
	exists, err := kube.Get(ctx, remote, client.ObjectKey{Namespace: AccountNamespace, Name: AccountName}, &corev1.ServiceAccount{})
	if err != nil {
		return "", fmt.Errorf("ask Cluster %s: %w", cluster, err)
	}
	if !exists {
		return fmt.Sprintf("ServiceAccount %s/%s", AccountNamespace, AccountName), nil
	}
	binding := &rbacv1.ClusterRoleBinding{}
	exists, err = kube.Get(ctx, remote, client.ObjectKey{Name: accountBinding}, binding)
	if err != nil {
		return "", fmt.Errorf("ask Cluster %s: %w", cluster, err)
	}
	if !exists || binding.RoleRef != accountRole() || !slices.ContainsFunc(binding.Subjects, isAccount) {
		return fmt.Sprintf("ClusterRoleBinding %s of ServiceAccount %s/%s", accountBinding, AccountNamespace, AccountName), nil
	}
	return "", nil
}

// accountRole is what the ServiceAccount may do.
func accountRole() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
}

func isAccount(s rbacv1.Subject) bool {
	return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == AccountNamespace && s.Name == AccountName
}

// Answer is what a cluster says to a kubeconfig.
type Answer struct {
	// ServerName is the first name by which the certificate verifies; Seen describes the certificates that were seen when it is empty.
	ServerName, Seen string
	// Refused: the cluster does not take the credential.
	Refused bool
	// ClusterID is the ID of the cluster; empty when the credential is refused, or was not sent.
	ClusterID string
}

// Ask sends the credential only to a server whose certificate verifies, unless the kubeconfig, which a user may have made, says not to look
// at certificates: then all who use it do the same.
func (c Cached) Ask(ctx context.Context, cluster client.ObjectKey, kubeconfig []byte, names []string) (answer Answer, err error) {
	err = c.Failures.unless("ask", cluster, kubeconfig, func() error {
		answer, err = ask(silent(ctx), kubeconfig, names)
		return err
	})
	if err != nil {
		return Answer{}, fmt.Errorf("ask Cluster %s: %w", cluster, quoted{err})
	}
	return answer, nil
}

func ask(ctx context.Context, kubeconfig []byte, names []string) (Answer, error) {
	config, err := configOf(kubeconfig)
	if err != nil {
		return Answer{}, err
	}
	answer, err := verify(ctx, config, names)
	if err != nil || answer.ServerName == "" {
		return answer, err
	}
	config.ServerName = answer.ServerName
	remote, err := clientOf(config, nil)
	if err != nil {
		return Answer{}, err
	}
	version := &configv1.ClusterVersion{}
	err = remote.Get(ctx, client.ObjectKey{Name: clusterVersion}, version)
	switch {
	case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
		answer.Refused = true
		return answer, nil
	case err != nil:
		return Answer{}, fmt.Errorf("read the ClusterVersion: %w", err)
	case version.Spec.ClusterID == "":
		return Answer{}, errors.New("the ClusterVersion has no spec.clusterID")
	}
	answer.ClusterID = string(version.Spec.ClusterID)
	return answer, nil
}

// EnsureAccount applies what is missing or was changed.
func (c Cached) EnsureAccount(ctx context.Context, cluster client.ObjectKey, kubeconfig []byte) error {
	return c.Failures.unless("account", cluster, kubeconfig, func() error {
		remote, err := connect(kubeconfig)
		if err != nil {
			return fmt.Errorf("connect to Cluster %s: %w", cluster, err)
		}
		for _, object := range []runtime.ApplyConfiguration{
			corev1ac.Namespace(AccountNamespace), corev1ac.ServiceAccount(AccountName, AccountNamespace),
		} {
			if err = remote.Apply(silent(ctx), object, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
				break
			}
		}
		if err == nil {
			err = bindAccount(silent(ctx), remote)
		}
		if err != nil {
			return fmt.Errorf("make ServiceAccount %s/%s of Cluster %s: %w", AccountNamespace, AccountName, cluster, quoted{err})
		}
		return nil
	})
}

// bindAccount makes the ServiceAccount cluster-admin. The role of a ClusterRoleBinding cannot be changed: one of our name that was made
// anew with another role gives way.
func bindAccount(ctx context.Context, remote client.Client) error {
	role := accountRole()
	wanted := rbacv1ac.ClusterRoleBinding(accountBinding).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(AccountNamespace).WithName(AccountName)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(role.APIGroup).WithKind(role.Kind).WithName(role.Name))
	err := remote.Apply(ctx, wanted, client.FieldOwner(fieldManager), client.ForceOwnership)
	if !apierrors.IsInvalid(err) {
		return err
	}
	there := &rbacv1.ClusterRoleBinding{}
	if readErr := remote.Get(ctx, client.ObjectKey{Name: accountBinding}, there); readErr != nil {
		return readErr
	}
	if there.RoleRef == role {
		return err
	}
	if err := kube.Delete(ctx, remote, there, "it grants another role"); err != nil {
		return err
	}
	return remote.Apply(ctx, wanted, client.FieldOwner(fieldManager), client.ForceOwnership)
}

// RequestToken writes nothing but a line in the cluster's audit log: tokens are not stored.
func (c Cached) RequestToken(
	ctx context.Context, cluster client.ObjectKey, kubeconfig []byte, lifetime time.Duration,
) (token Token, err error) {
	err = c.Failures.unless("token", cluster, kubeconfig, func() error {
		ctx, cancel := context.WithTimeout(silent(ctx), requestTimeout) // Of all attempts: who does not answer is not asked twice.
		defer cancel()
		for range tokenAttempts {
			if token, err = requestToken(ctx, kubeconfig, lifetime); err == nil || declined(err) || ctx.Err() != nil {
				break
			}
		}
		return err
	})
	if err != nil {
		return Token{}, fmt.Errorf(
			"request a token of ServiceAccount %s/%s of Cluster %s: %w",
			AccountNamespace,
			AccountName,
			cluster,
			quoted{err},
		)
	}
	return token, nil
}

// declined reports whether the cluster has decided, as all its API servers do: that is not tried again.
func declined(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code/100 == http.StatusBadRequest/100
}

// requestToken requests a token by a connection that nothing else uses, and that is closed afterwards.
func requestToken(ctx context.Context, kubeconfig []byte, lifetime time.Duration) (Token, error) {
	config, err := configOf(kubeconfig)
	if err != nil {
		return Token{}, err
	}
	config.Proxy = proxyOf(config) // client-go shares no connection of a configuration with a proxy.
	own, err := rest.HTTPClientFor(config)
	if err != nil {
		return Token{}, err
	}
	defer utilnet.CloseIdleConnectionsFor(own.Transport)
	remote, err := clientOf(config, own)
	if err != nil {
		return Token{}, err
	}
	seconds := int64(lifetime / time.Second)
	if seconds == extendedLifetime {
		seconds++
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: AccountNamespace, Name: AccountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := remote.SubResource("token").Create(ctx, account, request); err != nil {
		return Token{}, err
	}
	if request.Status.Token == "" || request.Status.ExpirationTimestamp.IsZero() {
		return Token{}, errors.New("the answer has no token, or does not say when it ends")
	}
	return Token{Value: request.Status.Token, Expires: request.Status.ExpirationTimestamp.Time}, nil
}

// silent keeps client-go from logging what is in a request and its response.
func silent(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// configOf is the client configuration of a kubeconfig, which must hold its credential: no program is run and no file read for it.
func configOf(kubeconfig []byte) (*rest.Config, error) {
	config, err := kubeconfigs.RESTConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	config.Wrap(connection.Bounded)
	config.Wrap(tracing.InstalledClusters.Wrap)
	return config, nil
}

func connect(kubeconfig []byte) (client.Client, error) {
	config, err := configOf(kubeconfig)
	if err != nil {
		return nil, err
	}
	return clientOf(config, nil)
}

// clientOf knows the few kinds that are needed here, so that it asks the cluster for none. Without an HTTP client of its own it shares the
// connections of others.
func clientOf(config *rest.Config, own *http.Client) (client.Client, error) {
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{corev1.AddToScheme, rbacv1.AddToScheme, authenticationv1.AddToScheme, configv1.Install}
	if err := kinds.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build the scheme of a client: %w", err)
	}
	return client.New(config, client.Options{HTTPClient: own, Scheme: scheme, Mapper: mapper()})
}
