// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// accountOf is the ServiceAccount of the token, and what makes it cluster-admin.
func accountOf() (*corev1.ServiceAccount, *rbacv1.ClusterRoleBinding) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-assisted-capi", Name: "cluster-api"}}
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "openshift-assisted-capi"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "openshift-assisted-capi", Name: "cluster-api"}},
	}
	return account, bound
}

func TestAccountMissing(t *testing.T) {
	account, bound := accountOf()
	unbound := bound.DeepCopy()
	unbound.Subjects[0].Name = "default"
	viewer := bound.DeepCopy()
	viewer.RoleRef.Name = "view"
	const binding = "ClusterRoleBinding openshift-assisted-capi of ServiceAccount openshift-assisted-capi/cluster-api"
	for name, tt := range map[string]struct {
		objects []client.Object
		missing string
	}{
		"nothing":                            {[]client.Object{account, bound}, ""},
		"the ServiceAccount":                 {[]client.Object{bound}, "ServiceAccount openshift-assisted-capi/cluster-api"},
		"the ClusterRoleBinding":             {[]client.Object{account}, binding},
		"whom the ClusterRoleBinding is for": {[]client.Object{account, unbound}, binding},
		"what the ClusterRoleBinding grants": {[]client.Object{account, viewer}, binding},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(connected(t, interceptor.Funcs{}, tt.objects...).AccountMissing(t.Context(), cluster, subscriber)).To(Equal(tt.missing))
		})
	}
	lost := workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}
	NewWithT(t).Expect(lost.AccountMissing(t.Context(), cluster, subscriber)).To(BeEmpty(), "nobody knows")
}

// behind is a connection that reads anew what is asked for a second time.
type behind struct {
	clustercache.ClusterCache

	anew  clustercache.ClusterCache
	asked int
}

func (b *behind) Watch(ctx context.Context, cluster client.ObjectKey, w clustercache.Watcher) error {
	b.asked++
	return b.ClusterCache.Watch(ctx, cluster, w)
}

func (b *behind) GetReader(ctx context.Context, cluster client.ObjectKey) (client.Reader, error) {
	if b.asked > 2 {
		return b.anew.GetReader(ctx, cluster)
	}
	return b.ClusterCache.GetReader(ctx, cluster)
}

// TestAccountIsReadAgain: what seems to be missing while nobody waits may be there by now. It is read again before somebody makes it anew.
func TestAccountIsReadAgain(t *testing.T) {
	account, bound := accountOf()
	for waits, want := range map[bool]string{false: "", true: "ClusterRoleBinding openshift-assisted-capi"} {
		g := NewWithT(t)
		c := &behind{
			ClusterCache: connected(t, interceptor.Funcs{}, account).Cache, anew: connected(t, interceptor.Funcs{}, account, bound).Cache,
		}
		watching := subscriber
		watching.Waits = waits
		missing, err := workload.Cached{Cache: c}.AccountMissing(t.Context(), cluster, watching)
		g.Expect(err).NotTo(HaveOccurred())
		found, _, _ := strings.Cut(missing, " of ServiceAccount")
		g.Expect(found).To(Equal(want), "with watches the first answer is as new as the next one")
	}
}

// unreached is a ClusterCache without connections that tells when it has tried to make one.
type unreached struct {
	clustercache.ClusterCache

	tried time.Time
}

func (u unreached) GetHealthCheckingState(context.Context, client.ObjectKey) clustercache.HealthCheckingState {
	return clustercache.HealthCheckingState{LastProbeTime: u.tried}
}

// TestConnected: a cluster that nobody has tried to connect to yet is not said to be lost.
func TestConnected(t *testing.T) {
	g := NewWithT(t)
	none := clustercache.NewFakeEmptyClusterCache()
	g.Expect(connected(t, interceptor.Funcs{}).Connected(t.Context(), cluster)).To(BeTrue())
	g.Expect(workload.Cached{Cache: unreached{ClusterCache: none}}.Connected(t.Context(), cluster)).To(BeTrue())
	lost := workload.Cached{Cache: unreached{ClusterCache: none, tried: time.Now()}}
	g.Expect(lost.Connected(t.Context(), cluster)).To(BeFalse())
}
