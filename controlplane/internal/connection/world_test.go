// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
)

const (
	token = "secret"
	limit = time.Minute
)

var key = types.NamespacedName{Namespace: "ns", Name: "c"}

// expired ends a watch whose kind has to be read anew.
var expired = &metav1.Status{
	TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired,
	Code: http.StatusGone,
}

// api plays an API server that has ConfigMaps.
type api struct {
	*httptest.Server

	mu sync.Mutex
	// token is the only one that is taken, and broken makes every list fail with its status.
	token  string
	broken int
	// denied says that the token may do nothing, and delay is how long every answer takes.
	denied bool
	delay  time.Duration
	// endless is the status of the answers to all requests but probes that do not end; zero does not.
	endless int
	// says is the answer to all requests but probes, of the type kind; empty is what is asked for.
	says, kind string
	// requests counts all requests, whoever they are from, and pods are the UIDs of Pods by their names.
	requests int
	pods     map[string]types.UID
	// held keeps lists from being answered until it is closed; nil does not.
	held chan struct{}
	// version is that of the last change, objects are all ConfigMaps, and watches those that are open.
	version int
	objects map[string]corev1.ConfigMap
	watches map[chan watch.Event]bool
	// lists and queries count requests, and remember what was asked for.
	lists   int
	queries []string
	// missing says that nothing but / is known.
	missing bool
	// looks are the queries of those that asked for nothing but metadata.
	looks []string
}

// newAPI starts an API server. Without a certificate it has that of all others.
func newAPI(t *testing.T, certificates ...tls.Certificate) *api {
	t.Helper()
	a := &api{
		token: token, objects: map[string]corev1.ConfigMap{}, watches: map[chan watch.Event]bool{}, pods: map[string]types.UID{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /api/v1/namespaces/ns/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			a.watch(w, r)
		} else {
			a.list(w, r)
		}
	})
	mux.HandleFunc("GET /api/v1/namespaces/ns/pods/{name}", a.pod)
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.requests++
		allowed, denied, delay, endless := r.Header.Get("Authorization") == "Bearer "+a.token, a.denied, a.delay, a.endless
		says, kind, missing := a.says, a.kind, a.missing
		a.mu.Unlock()
		<-time.After(delay)
		switch {
		case !allowed:
			refuse(w, http.StatusUnauthorized)
		case denied:
			refuse(w, http.StatusForbidden)
		case missing && r.URL.Path != "/":
			refuse(w, http.StatusNotFound)
		case endless != 0 && r.Method != http.MethodHead:
			write(w, endless)
		case says != "" && r.Method != http.MethodHead:
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, says)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	a.Server.EnableHTTP2 = true
	a.Server.TLS = &tls.Config{Certificates: certificates}
	a.Server.StartTLS()
	t.Cleanup(func() {
		a.Server.CloseClientConnections()
		a.Server.Close()
	})
	return a
}

func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, http.StatusText(code))
}

// write gives an answer that is longer than any reader should read.
func write(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	_, _ = w.Write(packed())
}

// packed is that answer. It is made once: that takes the race detector long.
var packed = sync.OnceValue(func() []byte {
	var written bytes.Buffer
	packing := gzip.NewWriter(&written)
	_, _ = io.WriteString(packing, `"`) // To memory, as the rest.
	text := bytes.Repeat([]byte("a"), 1<<20)
	for range largestAnswer>>20 + 1 {
		_, _ = packing.Write(text)
	}
	_ = packing.Close()
	return written.Bytes()
})

func (a *api) pod(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	uid := a.pods[r.PathValue("name")]
	if a.broken != 0 || uid == "" {
		refuse(w, cmp.Or(a.broken, http.StatusNotFound))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ns","name":%q,"uid":%q}}`, r.PathValue("name"), uid)
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	if held := a.held; held != nil {
		a.mu.Unlock()
		<-held
		a.mu.Lock()
	}
	defer a.mu.Unlock()
	if r.Header.Get("Accept") == onlyMetadata {
		a.looks = append(a.looks, r.URL.RawQuery)
	} else {
		a.lists++
		a.queries = append(a.queries, r.URL.RawQuery)
	}
	if a.broken != 0 && r.Header.Get("Accept") != onlyMetadata {
		refuse(w, a.broken)
		return
	}
	list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
	list.ResourceVersion = strconv.Itoa(a.version)
	for _, name := range page(&list, slices.Sorted(maps.Keys(a.objects)), r.URL.Query()) {
		list.Items = append(list.Items, a.objects[name])
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		panic(err)
	}
}

// page returns the names of one page, as an API server does that is asked for no more and for no answer from its memory.
func page(list *corev1.ConfigMapList, names []string, query url.Values) []string {
	size, err := strconv.Atoi(query.Get("limit"))
	if err != nil || query.Has("resourceVersion") {
		return names
	}
	from, _ := strconv.Atoi(query.Get("continue"))
	to := min(from+size, len(names))
	if to < len(names) {
		list.Continue = strconv.Itoa(to)
	}
	return names[from:to]
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan watch.Event, 100)
	a.mu.Lock()
	a.queries = append(a.queries, r.URL.RawQuery)
	a.watches[events] = true
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	defer a.with(func() { delete(a.watches, events) })
	for {
		select {
		case event, open := <-events:
			if !open {
				return
			}
			if err := json.NewEncoder(w).Encode(map[string]any{"type": event.Type, "object": event.Object}); err != nil {
				return // The reader has gone.
			}
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// set creates or changes a ConfigMap, and remove deletes it.
func (a *api) set(name, value string) { a.change(name, watch.Modified, value) }

func (a *api) remove(name string) { a.change(name, watch.Deleted, "") }

func (a *api) change(name string, event watch.EventType, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	o := corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, ResourceVersion: strconv.Itoa(a.version), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Data: map[string]string{"k": value},
	}
	if event == watch.Deleted {
		delete(a.objects, name)
	} else {
		a.objects[name] = o
	}
	a.send(watch.Event{Type: event, Object: &o})
}

func (a *api) send(event watch.Event) {
	for events := range a.watches {
		events <- event
	}
}

// end ends all watches with an error.
func (a *api) end(failure *metav1.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.send(watch.Event{Type: watch.Error, Object: failure})
	for events := range a.watches {
		close(events)
		delete(a.watches, events)
	}
}

func (a *api) with(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// open is how many watches are open, asked how many requests there were, and read how often all was read.
func (a *api) open() int { a.mu.Lock(); defer a.mu.Unlock(); return len(a.watches) }

func (a *api) asked() int { a.mu.Lock(); defer a.mu.Unlock(); return a.requests }

func (a *api) read() int { a.mu.Lock(); defer a.mu.Unlock(); return a.lists }

// kubeconfig is one for the API server.
func (a *api) kubeconfig(t *testing.T, edit func(*clientcmdapi.Config)) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   a.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}),
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if edit != nil {
		edit(config)
	}
	data, err := clientcmd.Write(*config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return data
}

// connections is a manager's Connections with one Cluster, whose kubeconfig is for the API server.
func connections(t *testing.T, a *api, edit func(*clientcmdapi.Config)) *Connections {
	t.Helper()
	return connectionsOf(t, map[string][]byte{key.Name: a.kubeconfig(t, edit)})
}

// connectionsOf is a manager's Connections with a Cluster for each kubeconfig.
func connectionsOf(t *testing.T, kubeconfigs map[string][]byte) *Connections {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	hub := fake.NewClientBuilder().WithScheme(scheme)
	for name, kubeconfig := range kubeconfigs {
		hub.WithObjects(clusterWith(client.ObjectKey{Namespace: key.Namespace, Name: name}, kubeconfig)...)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	reader := hub.Build()
	made, err := newConnections(t.Context(), reader, scheme, Options{
		SecretClient: reader, Wanted: func(c *clusterv1.Cluster) bool { return c.Labels["other"] == "" },
		Kinds: []Kind{{Object: &corev1.ConfigMap{}, Namespace: "ns", Keep: wanted}}, Mapper: mapper,
		UserAgent: "test", QPS: 100, Burst: 100, RetryInterval: time.Minute,
	})
	g.Expect(err).NotTo(HaveOccurred())
	return made
}

// clusterWith is a Cluster and the Secret with its kubeconfig.
func clusterWith(of client.ObjectKey, kubeconfig []byte) []client.Object {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return []client.Object{cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: secret.Name(of.Name, secret.Kubeconfig)},
		Data:       map[string][]byte{secret.KubeconfigDataName: kubeconfig},
	}}
}

// wanted keeps ConfigMaps but those that are called ignored.
func wanted(o client.Object) client.Object {
	if o.GetName() == "ignored" {
		return nil
	}
	return withoutManagedFields(o)
}
