// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// secretReads counts the requests for Secrets.
type secretReads struct {
	client.Client
	clock *clocktesting.FakeClock
	count int
}

func countSecretReads(g *WithT, objects ...client.Object) *secretReads {
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(assisted.AddToScheme(scheme)).To(Succeed())
	g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())
	reads := &secretReads{clock: clocktesting.NewFakeClock(time.Now())}
	get := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ok := o.(*corev1.Secret); ok {
			reads.count++
		}
		return c.Get(ctx, key, o, opts...)
	}
	reads.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
	return reads
}

func (r *secretReads) reconciler() *Reconciler {
	return &Reconciler{Client: r, secrets: newSecrets(r, r.clock)}
}

// TestNetworkDataIsReadRarely: however many passes and configs there are, each Secret is read once a minute, and only the missing one while
// there is one.
func TestNetworkDataIsReadRarely(t *testing.T) {
	const hosts, passes = 300, 10
	g := NewWithT(t)
	s := networked()
	s.hosts, s.networks, s.nmstates = nil, nil, nil
	var objects []client.Object
	for i := range hosts {
		host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("host-%03d", i), Namespace: "ns"}}
		host.Spec.PreprovisioningNetworkDataName = host.Name
		s.hosts = append(s.hosts, host)
		data := networkData(fmt.Sprintf("00:00:5e:00:%02x:%02x", i/256, i%256))
		n := hostNetwork{host: &host, secret: host.Name, data: data, read: true}
		config, err := n.config(s)
		g.Expect(err).NotTo(HaveOccurred())
		if i > 0 {
			objects = append(objects, config, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: host.Name, Namespace: "ns"}, Data: data})
		}
	}
	reads := countSecretReads(g, objects...)
	r := reads.reconciler()
	pass := func() decision {
		s.networks, s.nmstates = nil, nil
		g.Expect(r.observeNetworks(t.Context(), s)).To(Succeed())
		return decide(s)
	}
	for range passes {
		g.Expect(pass().image.Reason).To(Equal(bootstrapv1.NetworkDataMissingReason))
	}
	g.Expect(reads.count).To(Equal(1), "the one that is missing")
	reads.clock.Step(networkRetry + 1)
	pass()
	g.Expect(reads.count).To(Equal(2), "after a minute it is looked for again")

	g.Expect(reads.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "host-000", Namespace: "ns"},
		Data: networkData("00:00:5e:00:00:00")})).
		To(Succeed())
	reads.clock.Step(networkRetry + 1)
	for range passes {
		g.Expect(names(pass().networks.write)).To(Equal([]string{"demo-x-host-000"}))
	}
	g.Expect(reads.count).To(Equal(2 + hosts))
}

// TestDataSecretIsReadRarely: passes over a config that stays as it is do not ask for its Secret, a pass that follows a change does.
func TestDataSecretIsReadRarely(t *testing.T) {
	const passes = 10
	g, ctx := NewWithT(t), t.Context()
	s := prepared()
	s.config.Namespace, s.config.ResourceVersion = "ns", "1"
	secret := &corev1.Secret{Data: map[string][]byte{"value": []byte("{}")}, ObjectMeta: metav1.ObjectMeta{
		Name: "m-0", Namespace: "ns", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
		OwnerReferences: []metav1.OwnerReference{{UID: s.config.UID, Name: "m-0", Controller: ptr.To(true)}},
	}}
	reads := countSecretReads(g, secret)
	r := reads.reconciler()
	pass := func(want int, why string) {
		for range passes {
			s.secret = nil
			g.Expect(r.observeSecret(ctx, s)).To(Succeed())
		}
		g.Expect(reads.count).To(Equal(want), why)
	}
	pass(1, "it is there")
	g.Expect(s.secret.Data).To(BeNil(), "nobody needs its content")
	g.Expect(intact(s, s.secret)).To(BeTrue())
	s.config.ResourceVersion = "2"
	pass(2, "the config has changed")
	r.secrets.keep(s, "2.1")
	s.config.ResourceVersion = "2.1"
	pass(2, "nobody but the pass itself has changed the config")
	reads.clock.Step(dataSecretMemory + 1)
	pass(3, "somebody may have changed it")

	g.Expect(reads.Delete(ctx, secret)).To(Succeed())
	reads.clock.Step(dataSecretMemory + 1)
	pass(4, "it is missing")
	g.Expect(s.secret).To(BeNil())
	r.secrets.forget(s)
	pass(5, "it has just been made")

	s.config.ResourceVersion = "3"
	g.Expect(reads.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "m-0", Namespace: "ns"}})).To(Succeed())
	pass(5+passes, "somebody else's is looked at until it is gone")

	s.config.DeletionTimestamp = ptr.To(metav1.Now())
	pass(5+passes, "it goes with the config")
}
