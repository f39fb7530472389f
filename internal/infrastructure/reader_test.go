// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/metal3"
)

var devMachine = clusterv1.ContractVersionedObjectReference{APIGroup: metal3.InfrastructureGroup, Kind: "DevMachine", Name: "m-0"}

// apiServer serves one CustomResourceDefinition, and the objects of its kind once it allows to list them.
type apiServer struct {
	ref     clusterv1.ContractVersionedObjectReference
	allowed atomic.Bool
	// watched counts the informers of the kind.
	watched atomic.Int32
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural := strings.ToLower(s.ref.Kind) + "s"
	watch := r.URL.Query().Get("watch") == "true"
	ofKind := strings.HasSuffix(r.URL.Path, "/"+plural)
	if watch && ofKind {
		s.watched.Add(1)
	}
	switch {
	case ofKind && !s.allowed.Load():
		answer(w, http.StatusForbidden, failure(http.StatusForbidden, metav1.StatusReasonForbidden))
	case r.URL.Query().Get("sendInitialEvents") == "true":
		answer(w, http.StatusBadRequest, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest))
	case watch:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case ofKind:
		list := object(s.ref)
		list.SetKind(s.ref.Kind + "List")
		list.Object["metadata"] = map[string]any{"resourceVersion": "1"}
		list.Object["items"] = []any{object(s.ref).Object}
		answer(w, http.StatusOK, list.Object)
	default:
		s.answerCRDs(w, r, plural)
	}
}

func (s *apiServer) answerCRDs(w http.ResponseWriter, r *http.Request, plural string) {
	named := metav1.ObjectMeta{
		Name: plural + "." + s.ref.APIGroup, ResourceVersion: "1", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"},
	}
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		answer(w, http.StatusOK, metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items: []metav1.PartialObjectMetadata{
				{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: named},
			},
		})
		return
	}
	answer(w, http.StatusOK, apiextensionsv1.CustomResourceDefinitionList{
		TypeMeta: metav1.TypeMeta{Kind: "CustomResourceDefinitionList", APIVersion: "apiextensions.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items:    []apiextensionsv1.CustomResourceDefinition{{ObjectMeta: named}},
	})
}

func failure(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason}
}

func answer(w http.ResponseWriter, code int, o any) {
	w.Header().Set("Content-Type", "application/json")
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

// newReader returns a Reader that reads from an API server as a manager does.
func newReader(t *testing.T, server *apiServer) *Reader {
	t.Helper()
	g := NewWithT(t)
	httpServer := httptest.NewServer(server)
	t.Cleanup(httpServer.CloseClientConnections)
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: server.ref.APIGroup, Version: "v1beta2", Kind: server.ref.Kind}, meta.RESTScopeNamespace)
	config := &rest.Config{Host: httpServer.URL}
	informers, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper})
	g.Expect(err).NotTo(HaveOccurred())
	cached, err := client.New(
		config, client.Options{Scheme: scheme, Mapper: mapper, Cache: &client.CacheOptions{Reader: informers, Unstructured: true}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	live, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = informers.Start(ctx) }()
	g.Expect(informers.WaitForCacheSync(ctx)).To(BeTrue())
	return &Reader{Cached: cached, Live: live, Label: "example.com/aggregate"}
}

// TestReader: a kind that the manager may not list costs a pass one refused request, and no informer; once a role allows it, the object is
// there.
func TestReader(t *testing.T) {
	g := NewWithT(t)
	server := &apiServer{ref: devMachine}
	reader := newReader(t, server)
	for range 2 {
		_, err := reader.Get(t.Context(), devMachine, "ns")
		var refused *NotAllowedError
		g.Expect(err).To(MatchError(ContainSubstring(
			`the manager may not list devmachines.infrastructure.cluster.x-k8s.io: allow it in a ClusterRole ` +
				`with the label example.com/aggregate: "true"`,
		)))
		g.Expect(errors.As(err, &refused)).To(BeTrue())
	}
	g.Expect(server.watched.Load()).To(BeZero())

	server.allowed.Store(true)
	o, err := reader.Get(t.Context(), devMachine, "ns")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.GetName()).To(Equal("m-0"))

	server.allowed.Store(false)
	o, err = reader.Get(t.Context(), devMachine, "ns")
	g.Expect(err).NotTo(HaveOccurred(), "the cache is filled and does not wait")
	g.Expect(o.GetName()).To(Equal("m-0"))
}

// TestReadIsBounded: a kind that the manager's role names, and that cannot be listed all the same, does not cost a pass its whole time.
func TestReadIsBounded(t *testing.T) {
	g := NewWithT(t)
	reader := newReader(t, &apiServer{ref: reference})
	pass, cancel := context.WithTimeout(t.Context(), 20*readTimeout) // A busy machine ends the read late.
	defer cancel()
	_, err := reader.Get(pass, reference, "ns")
	g.Expect(err).To(HaveOccurred())
	g.Expect(pass.Err()).NotTo(HaveOccurred(), "the pass has time left to write its status")
}
