// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestReduce: the cache keeps no managed fields, and of Agents and BareMetalHosts only what is read.
func TestReduce(t *testing.T) {
	g := NewWithT(t)
	agent, host := &assisted.Agent{}, &bmov1alpha1.BareMetalHost{}
	agent.Status.ValidationsInfo = common.ValidationsStatus{"network": {{ID: "connected", Status: "success"}}}
	host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{Hostname: "x"}
	seen := 0
	transform := cacheOptions(Options{}, Config{Name: "reduce", Reduce: func(client.Object) { seen++ }}, runtime.NewScheme()).DefaultTransform
	for _, o := range []client.Object{agent, host} {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
		o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"})
		reduced, err := transform(o)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reduced).To(BeIdenticalTo(o))
		g.Expect(o.GetManagedFields()).To(BeEmpty())
		g.Expect(o.GetAnnotations()).To(Equal(map[string]string{"a": "b"}))
	}
	g.Expect(seen).To(Equal(2), "each manager drops more of its own")
	g.Expect(agent.Status.ValidationsInfo).To(BeEmpty())
	g.Expect(host.Status.HardwareDetails.Hostname).To(BeEmpty())
}
