// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	limit = 20 * time.Second
)

var key = types.NamespacedName{Namespace: "ns", Name: "c"}

// api plays an API server that has ConfigMaps.
type api struct {
	*httptest.Server

	mu sync.Mutex
	// token is the only one that is taken, and broken makes every list fail with its status.
	token  string
	broken int
	// held keeps lists from being answered until it is closed; nil does not.
	held chan struct{}
	// version is that of the last change, objects are all ConfigMaps, and watches those that are open.
	version int
	objects map[string]corev1.ConfigMap
	watches map[chan watch.Event]bool
	// lists and queries count requests, and remember what was asked for.
	lists   int
	queries []string
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{token: token, objects: map[string]corev1.ConfigMap{}, watches: map[chan watch.Event]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /api/v1/namespaces/ns/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			a.watch(w, r)
		} else {
			a.list(w, r)
		}
	})
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		allowed := r.Header.Get("Authorization") == "Bearer "+a.token
		a.mu.Unlock()
		if !allowed {
			refuse(w, http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	a.Server.EnableHTTP2 = true
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

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	if held := a.held; held != nil {
		a.mu.Unlock()
		<-held
		a.mu.Lock()
	}
	defer a.mu.Unlock()
	a.lists++
	a.queries = append(a.queries, r.URL.RawQuery)
	if a.broken != 0 {
		refuse(w, a.broken)
		return
	}
	list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
	list.ResourceVersion = strconv.Itoa(a.version)
	for _, o := range a.objects {
		list.Items = append(list.Items, o)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		panic(err)
	}
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

// end ends all watches, after an error if there is one.
func (a *api) end(failure *metav1.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if failure != nil {
		a.send(watch.Event{Type: watch.Error, Object: failure})
	}
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

// open is how many watches are open, and read how often all was read.
func (a *api) open() int { a.mu.Lock(); defer a.mu.Unlock(); return len(a.watches) }

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
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: secret.Name(key.Name, secret.Kubeconfig)},
		Data:       map[string][]byte{secret.KubeconfigDataName: a.kubeconfig(t, edit)},
	}).Build()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	made, err := newConnections(t.Context(), hub, scheme, Options{
		SecretClient: hub, Wanted: func(c *clusterv1.Cluster) bool { return c.Labels["other"] == "" },
		Kinds: []Kind{{Object: &corev1.ConfigMap{}, Namespace: "ns", Keep: wanted}}, Mapper: mapper,
		UserAgent: "test", QPS: 100, Burst: 100, RetryInterval: time.Minute,
	})
	g.Expect(err).NotTo(HaveOccurred())
	return made
}

// wanted keeps ConfigMaps but those that are called ignored.
func wanted(o client.Object) client.Object {
	if o.GetName() == "ignored" {
		return nil
	}
	return withoutManagedFields(o)
}
