// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"sync"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// reduce makes objects smaller on their way into the cache: a hub has a dozen of them for each cluster, and thousands of clusters. It drops
// what nobody reads. What kubectl has applied is there a second time, in an annotation: patches, which are made of what was read, leave it
// alone.
func (cfg Config) reduce(in any) (any, error) {
	o, ok := in.(client.Object)
	if !ok {
		return in, nil // It is what an informer says of an object whose deletion it has missed.
	}
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	if cfg.Reduce != nil {
		cfg.Reduce(o)
	}
	switch o := o.(type) {
	case *assisted.Agent:
		assisted.ReduceAgent(o)
	case *bmov1alpha1.BareMetalHost:
		metal3.ReduceHost(o)
	case *clusterv1.Cluster:
		reduceCluster(o)
	}
	ShareWords(o)
	return o, nil
}

// reduceCluster keeps of the conditions of a Cluster the one that is read. Only Cluster API writes the status of a Cluster.
func reduceCluster(cluster *clusterv1.Cluster) {
	cluster.Status.Deprecated = nil
	cluster.Status.Conditions = slices.DeleteFunc(cluster.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type != clusterv1.ClusterRemoteConnectionProbeCondition
	})
}

// vocabulary is of words that many objects repeat, of each of which one copy is enough.
type vocabulary struct {
	mu    sync.Mutex
	words map[string]string
}

const (
	// mostWords is how many words are shared. Tenants choose the keys of labels.
	mostWords = 4096
	// longestWord is how many bytes such a word may have: as many as the key of a label.
	longestWord = 317
)

// repeated is the vocabulary of all caches.
var repeated = &vocabulary{words: map[string]string{}}

// share returns a word of the vocabulary in the place of an equal one.
func (v *vocabulary) share(word string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.words[word]; ok {
		return known
	}
	if len(v.words) < mostWords && len(word) <= longestWord {
		v.words[word] = word
	}
	return word
}

// ShareWords lets an object on its way into a cache share the words that all objects repeat.
func ShareWords(o client.Object) {
	o.SetLabels(repeated.keys(o.GetLabels()))
	o.SetAnnotations(repeated.keys(o.GetAnnotations()))
	owners := o.GetOwnerReferences()
	for i := range owners {
		owners[i].APIVersion, owners[i].Kind = repeated.share(owners[i].APIVersion), repeated.share(owners[i].Kind)
	}
	o.SetOwnerReferences(owners)
	if told, ok := o.(conditions.Setter); ok {
		all := slices.Clone(told.GetConditions()) // Without the room that decoding leaves for more of them.
		for i := range all {
			all[i].Type, all[i].Reason = repeated.share(all[i].Type), repeated.share(all[i].Reason)
			all[i].Status = metav1.ConditionStatus(repeated.share(string(all[i].Status)))
		}
		told.SetConditions(all)
	}
}

// keys is a map with shared keys.
func (v *vocabulary) keys(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	shared := make(map[string]string, len(of))
	for key, value := range of {
		shared[v.share(key)] = value
	}
	return shared
}
