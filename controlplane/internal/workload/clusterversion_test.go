// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// upgradingVersion is a ClusterVersion on its way to 4.20.8, with an update that somebody has forced before.
func upgradingVersion() *configv1.ClusterVersion {
	v := clusterVersion("3c1d")
	v.Generation = 3
	v.Spec.Channel = "stable-4.20"
	v.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.6", Image: "r@sha256:6", Force: true}
	v.Status = configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: "4.20.8", Image: "r@sha256:8"}, ObservedGeneration: 2,
		History: []configv1.UpdateHistory{
			{State: configv1.PartialUpdate, Version: "4.20.8", Image: "r@sha256:8", StartedTime: metav1.NewTime(time.Unix(60, 0))},
			{State: configv1.CompletedUpdate, Version: "4.20.4", Image: "r@sha256:4", StartedTime: metav1.NewTime(time.Unix(0, 0))},
		},
		AvailableUpdates: []configv1.Release{{Version: "4.20.9", Image: "r@sha256:9", URL: "https://example.com"}},
		ConditionalUpdates: []configv1.ConditionalUpdate{{
			Release: configv1.Release{Version: "4.20.7", Image: "r@sha256:7"},
			Risks:   []configv1.ConditionalUpdateRisk{{Name: "Slow", Message: "it is\nslow"}},
			Conditions: []metav1.Condition{
				{Type: "Recommended", Status: metav1.ConditionFalse}, {Type: "Other", Status: metav1.ConditionTrue},
			},
		}},
		Conditions: []configv1.ClusterOperatorStatusCondition{
			{
				Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue,
				Message: "Working towards 4.20.8: 123 of 900 done (13% complete), waiting on machine-config",
			},
			{Type: "Failing", Status: configv1.ConditionUnknown, Reason: "SlowClusterOperator", Message: "etcd takes long"},
		},
	}
	return v
}

func TestVersionOf(t *testing.T) {
	unreported := workload.OperatorCondition{Status: configv1.ConditionUnknown, Message: "not reported"}
	NewWithT(t).Expect(workload.VersionOf(upgradingVersion())).To(Equal(&workload.ClusterVersion{
		ClusterID: "3c1d", Channel: "stable-4.20", Requested: workload.Release{Version: "4.20.6", Image: "r@sha256:6"},
		Desired: workload.Release{Version: "4.20.8", Image: "r@sha256:8"},
		History: []workload.PastRelease{
			{Release: workload.Release{Version: "4.20.8", Image: "r@sha256:8"}, Started: time.Unix(60, 0)},
			{Release: workload.Release{Version: "4.20.4", Image: "r@sha256:4"}, Started: time.Unix(0, 0), Completed: true},
		},
		Available: []workload.Release{{Version: "4.20.9", Image: "r@sha256:9"}},
		Conditional: []workload.ConditionalRelease{
			{Release: workload.Release{Version: "4.20.7", Image: "r@sha256:7"}, Risks: map[string]string{"Slow": "it is slow"}},
		},
		Progressing: workload.OperatorCondition{
			Status: configv1.ConditionTrue, Message: "Working towards 4.20.8: 13% complete, waiting on machine-config",
		},
		Failing:     workload.OperatorCondition{Status: configv1.ConditionUnknown, Reason: "SlowClusterOperator", Message: "etcd takes long"},
		Upgradeable: unreported, Accepted: unreported, Invalid: unreported, Retrieved: unreported,
	}))
}

func TestVersion(t *testing.T) {
	g := NewWithT(t)
	version, err := workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}.Version(t.Context(), cluster, subscriber)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(BeNil())
	version, err = connected(t, interceptor.Funcs{}, upgradingVersion()).Version(t.Context(), cluster, subscriber)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.Desired.Version).To(Equal("4.20.8"))
	_, err = connected(t, interceptor.Funcs{}).Version(t.Context(), cluster, subscriber)
	g.Expect(err).To(MatchError(ContainSubstring("read ClusterVersion version of Cluster ns/c")))
}

// TestChangeVersion: spec.desiredUpdate is replaced as a whole, so that no force is left of an earlier one.
func TestChangeVersion(t *testing.T) {
	g := NewWithT(t)
	var remote client.Client
	up := connected(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			remote = c
			return c.Get(ctx, key, o, opts...)
		},
	}, upgradingVersion())
	read, err := up.Version(t.Context(), cluster, subscriber)
	g.Expect(err).NotTo(HaveOccurred())
	written, err := up.ChangeVersion(t.Context(), cluster, read.ResourceVersion, workload.VersionChange{
		Channel: "fast-4.20", Release: workload.Release{Version: "4.20.9", Image: "r@sha256:9"}, AcceptedRisks: []string{"Slow"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).To(BeTrue())
	changed := &configv1.ClusterVersion{}
	g.Expect(remote.Get(t.Context(), client.ObjectKey{Name: "version"}, changed)).To(Succeed())
	g.Expect(changed.Spec).To(Equal(configv1.ClusterVersionSpec{
		ClusterID: "3c1d", Channel: "fast-4.20", DesiredUpdate: &configv1.Update{
			Version: "4.20.9", Image: "r@sha256:9", AcceptRisks: []configv1.AcceptRisk{{Name: "Slow"}},
		},
	}))
	written, err = up.ChangeVersion(t.Context(), cluster, changed.ResourceVersion, workload.VersionChange{Channel: "stable-4.21"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).To(BeTrue())
	g.Expect(remote.Get(t.Context(), client.ObjectKey{Name: "version"}, changed)).To(Succeed())
	g.Expect(changed.Spec.Channel).To(Equal("stable-4.21"))
	g.Expect(changed.Spec.DesiredUpdate.Version).To(Equal("4.20.9"), "what is not changed stays")
}

// TestChangeVersionThatIsRefused: an API server refuses a JSON patch whose test fails as it refuses a value that is not valid.
func TestChangeVersionThatIsRefused(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "config.openshift.io", Kind: "ClusterVersion"}, "version", nil)
	for name, tc := range map[string]struct {
		read   string
		answer error
		want   string
	}{
		"it has changed since":   {read: "1", answer: invalid},
		"it is not valid":        {answer: invalid, want: "write ClusterVersion version of Cluster ns/c"},
		"nobody answers":         {answer: errors.New("EOF"), want: "EOF"},
		"the manager may not it": {answer: apierrors.NewForbidden(schema.GroupResource{}, "version", errors.New("no role")), want: "no role"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			up := connected(t, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.answer
				},
			}, upgradingVersion())
			read, err := up.Version(t.Context(), cluster, subscriber)
			g.Expect(err).NotTo(HaveOccurred())
			resourceVersion := read.ResourceVersion
			if tc.read != "" {
				resourceVersion = tc.read
			}
			written, err := up.ChangeVersion(t.Context(), cluster, resourceVersion, workload.VersionChange{Channel: "x"})
			g.Expect(written).To(BeFalse())
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestGates(t *testing.T) {
	g := NewWithT(t)
	up := connected(t, interceptor.Funcs{})
	gates, err := up.Gates(t.Context(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gates).To(BeEmpty(), "there may be no ConfigMap")

	up = connected(t, interceptor.Funcs{}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"},
		Data:       map[string]string{"ack-4.20-b": "second\ngate", "ack-4.20-a": "first gate"},
	})
	g.Expect(up.Acknowledge(t.Context(), cluster, []string{"ack-4.20-b"})).To(Succeed())
	gates, err = up.Gates(t.Context(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gates).To(Equal([]workload.Gate{
		{Key: "ack-4.20-a", Text: "first gate"}, {Key: "ack-4.20-b", Text: "second gate", Acknowledged: true},
	}))
}
