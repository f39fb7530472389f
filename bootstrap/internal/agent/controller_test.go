// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
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

// TestOrphans: the Agent of a Machine that does not exist any more is deleted, and no other one. A host that registers anew meanwhile has
// another Agent of the same name, which stays, and that is no error.
func TestOrphans(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, assisted.AddToScheme,
	} {
		NewWithT(t).Expect(add(scheme)).To(Succeed())
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "agents"}, "a-0", errors.New("the UID differs"))
	for name, test := range map[string]struct {
		machine string // the UID of the Machine that has the name of the Agent's; empty when there is none
		answer  error
		stays   bool
		events  int
	}{
		"its Machine exists":                     {machine: "uid-0", stays: true},
		"its Machine is gone":                    {events: 1},
		"another Machine has its Machine's name": {machine: "uid-1", events: 1},
		"another Agent has taken its name":       {answer: conflict, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "a-0", UID: "agent-uid", Annotations: map[string]string{bootstrapv1.ClaimAnnotation: "m-0/uid-0"},
			}}
			objects := []client.Object{agent}
			if test.machine != "" {
				machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m-0", UID: types.UID(test.machine)}}
				objects = append(objects, machine)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if test.answer != nil {
						return test.answer
					}
					return c.Delete(ctx, o, opts...)
				},
			}).Build()
			recorder := events.NewFakeRecorder(10)
			r := &Reconciler{Client: c, APIReader: c, Recorder: recorder}
			key := client.ObjectKeyFromObject(agent)
			g.Expect(kube.OutcomeOf(r.lookAfter(t.Context(), agent)).Err()).To(Succeed())
			exists, err := kube.Get(t.Context(), c, key, &assisted.Agent{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(exists).To(Equal(test.stays))
			g.Expect(recorder.Events).To(HaveLen(test.events))
		})
	}
}

// TestChangedAgentStays: an Agent is deleted for what it was when it was read. One that is claimed for another Machine since stays.
func TestChangedAgentStays(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(assisted.AddToScheme(scheme)).To(Succeed())
	for name, annotations := range map[string]map[string]string{
		"not prepared yet": {bootstrapv1.ClaimAnnotation: "m-0/uid-0"},
		"prepared":         {bootstrapv1.ClaimAnnotation: "m-0/uid-0", assisted.SkipSpokeCleanupAnnotation: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			read := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0", UID: "agent-uid", Annotations: annotations}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(read).Build()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(read), read)).To(Succeed())
			changed := read.DeepCopy()
			changed.Annotations[bootstrapv1.ClaimAnnotation] = "m-1/uid-1"
			g.Expect(c.Update(t.Context(), changed)).To(Succeed())
			g.Expect(kube.IsConflict(Delete(t.Context(), c, read, "its Machine is being deleted"))).To(BeTrue())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(read), read)).To(Succeed())
			g.Expect(Delete(t.Context(), c, read, "its Machine is being deleted")).To(Succeed())
			g.Expect(kube.Get(t.Context(), c, client.ObjectKeyFromObject(read), read)).To(BeFalse())
		})
	}
}
