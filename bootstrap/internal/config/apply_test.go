// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/util/patch"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestInfraEnvIsRecordedFirst: nothing is made in the pass that records its name, and the host controller may write the config meanwhile.
func TestInfraEnvIsRecordedFirst(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, assisted.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	s := prepared()
	s.infraEnv, s.config.Namespace, s.config.Annotations = nil, "ns", nil
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.config).WithStatusSubresource(s.config).Build()
	key := client.ObjectKeyFromObject(s.config)
	g.Expect(c.Get(ctx, key, s.config)).To(Succeed())
	helper, err := patch.NewHelper(s.config, c)
	g.Expect(err).NotTo(HaveOccurred())

	d := decide(s)
	o := (&Reconciler{Client: c, Recorder: events.NewFakeRecorder(10)}).apply(ctx, s, d)
	g.Expect(o.err()).NotTo(HaveOccurred())
	infraEnvs := &assisted.InfraEnvList{}
	g.Expect(c.List(ctx, infraEnvs)).To(Succeed())
	g.Expect(infraEnvs.Items).To(BeEmpty(), "its name is not recorded yet")

	other := &bootstrapv1.OpenshiftAssistedConfig{}
	g.Expect(c.Get(ctx, key, other)).To(Succeed())
	before := other.DeepCopy()
	metav1.SetMetaDataLabel(&other.ObjectMeta, "example.com/by", "another controller")
	g.Expect(c.Patch(ctx, other, client.MergeFrom(before))).To(Succeed())

	setStatus(s, result{decision: &d, outcomes: o})
	g.Expect(patchConfig(ctx, helper, s.config, result{decision: &d})).To(Succeed())
	g.Expect(c.Get(ctx, key, other)).To(Succeed())
	g.Expect(other.Annotations).To(HaveKeyWithValue(bootstrapv1.InfraEnvAnnotation, "demo-x"))
	g.Expect(other.Labels).To(HaveKeyWithValue("example.com/by", "another controller"))
}
