// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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

// TestReduceCluster: of the conditions of a Cluster the cache keeps the one that is read.
func TestReduceCluster(t *testing.T) {
	g := NewWithT(t)
	cluster := &clusterv1.Cluster{}
	cluster.Status.Deprecated = &clusterv1.ClusterDeprecatedStatus{}
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	read := metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionTrue, Reason: "x"}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailableCondition}, read}
	kept, err := Config{}.reduce(cluster)
	g.Expect(err).NotTo(HaveOccurred())
	want := &clusterv1.Cluster{}
	want.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	want.Status.Conditions = []metav1.Condition{read}
	g.Expect(kept).To(Equal(want))
}

// TestShareWords: an object in a cache says what it has said, and shares the words that all objects repeat.
func TestShareWords(t *testing.T) {
	g := NewWithT(t)
	made := func() *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.Name, m.Labels, m.Annotations = "m", map[string]string{fmt.Sprint("la", "bel"): "x"}, map[string]string{"annotation": "y"}
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: fmt.Sprint("Ki", "nd"), Name: "o"}}
		m.Status.Conditions = append(make([]metav1.Condition, 0, 16), metav1.Condition{
			Type: fmt.Sprint("Rea", "dy"), Status: "True", Reason: "r",
		})
		return m
	}
	one, two := made(), made()
	ShareWords(one)
	ShareWords(two)
	g.Expect(one).To(Equal(made()))
	g.Expect(cap(one.Status.Conditions)).To(BeNumerically("<", 4), "without the room for more")
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	g.Expect(same(one.Status.Conditions[0].Type, two.Status.Conditions[0].Type)).To(BeTrue())
	g.Expect(same(one.OwnerReferences[0].Kind, two.OwnerReferences[0].Kind)).To(BeTrue())
	g.Expect(same(slices.Collect(maps.Keys(one.Labels))[0], slices.Collect(maps.Keys(two.Labels))[0])).To(BeTrue())
	empty := &clusterv1.Machine{}
	ShareWords(empty)
	g.Expect(empty).To(Equal(&clusterv1.Machine{}))
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "K", "metadata": map[string]any{"name": "u"}}}
	shared := u.DeepCopy()
	ShareWords(shared)
	g.Expect(shared).To(Equal(u))
}

// TestVocabulary: it does not grow without a bound, since tenants choose words.
func TestVocabulary(t *testing.T) {
	g := NewWithT(t)
	v := &vocabulary{words: map[string]string{}}
	for i := range mostWords + 1 {
		g.Expect(v.share(strconv.Itoa(i))).To(Equal(strconv.Itoa(i)))
	}
	g.Expect(v.words).To(HaveLen(mostWords))
	v = &vocabulary{words: map[string]string{}}
	v.share(strings.Repeat("a", longestWord+1))
	g.Expect(v.words).To(BeEmpty())
}
