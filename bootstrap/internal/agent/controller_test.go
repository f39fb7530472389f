// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestWatched: with a filter, a manager looks after Agents of InfraEnvs that one of its configs uses (CONTRACT BOOT-42).
func TestWatched(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())
	config := func(name, label string) *bootstrapv1.OpenshiftAssistedConfig {
		return &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.WatchLabel: label}}}
	}
	tests := []struct {
		name   string
		filter string
		users  []string
		want   bool
	}{
		{name: "without a filter all are watched", users: []string{"two"}, want: true},
		{name: "without a filter those of a vanished InfraEnv too", want: true},
		{name: "one of the users has the label", filter: "1", users: []string{"gone", "two", "one"}, want: true},
		{name: "the users have another label", filter: "1", users: []string{"two"}},
		{name: "no user exists", filter: "1", users: []string{"gone"}},
		{name: "there is no user", filter: "1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			infraEnv := &assisted.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
			for _, user := range tt.users {
				infraEnv.OwnerReferences = append(infraEnv.OwnerReferences, metav1.OwnerReference{Kind: "OpenshiftAssistedConfig", Name: user})
			}
			r := &Reconciler{
				Client:      fake.NewClientBuilder().WithScheme(scheme).WithObjects(config("one", "1"), config("two", "2")).Build(),
				WatchFilter: tt.filter,
			}
			g.Expect(r.watched(context.Background(), infraEnv)).To(Equal(tt.want))
		})
	}
}
