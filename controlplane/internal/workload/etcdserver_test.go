// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// What is between the manager and etcd may let WebSockets through, or not.
const (
	overWebSockets = "over WebSockets"
	overSPDY       = "over SPDY"
)

// What an execServer may do instead of an answer.
const (
	cuts           = "cuts"           // It closes the connection when the command has arrived.
	hangs          = "hangs"          // It never answers a command that has arrived.
	neverUpgrade   = "neverUpgrade"   // It never answers the request for the command.
	refusesOnAndOn = "refusesOnAndOn" // It refuses the request for the command, in more words than any reader should read.
)

// said is what a program prints, and how it ends.
type said struct {
	stdout, stderr string
	code           int
	// instead is what happens instead of an answer; empty when it comes.
	instead string
}

// execServer is an API server for pods/exec: it runs nothing, answers each program with what the test says, and records the programs.
type execServer struct {
	protocol string
	answer   func(program string) said
	// stop ends what hangs.
	stop chan struct{}
	// hung has the beginning of everything that hangs, and left the end of its connection.
	hung, left chan struct{}

	lock     sync.Mutex
	programs []string
	requests []*http.Request
	// deadlines are how long the requests may take, seen where the proxy is chosen.
	deadlines []time.Duration
}

type connectionKey struct{}

// serving is a cluster with an API server that answers, and with these objects.
func serving(t *testing.T, protocol string, answer func(string) said, objects ...client.Object) (workload.Cached, *execServer) {
	t.Helper()
	s := &execServer{
		protocol: protocol, answer: answer, stop: make(chan struct{}), hung: make(chan struct{}, 8), left: make(chan struct{}, 8),
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	server.StartTLS()
	t.Cleanup(func() {
		close(s.stop)
		server.Close()
	})
	up := connected(t, interceptor.Funcs{}, objects...)
	up.Cache = withConfig{ClusterCache: up.Cache, config: &rest.Config{
		Host: server.URL, BearerToken: token, UserAgent: "the-user-agent", Proxy: s.proxy,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: "example.com", CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
	}}
	return up, s
}

// token must be in no error.
const token = "a-secret-token"

// withConfig is a ClusterCache with the configuration of a connection, which clustercache's fake has not.
type withConfig struct {
	clustercache.ClusterCache
	config *rest.Config
}

func (c withConfig) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return c.config, nil
}

// proxy is none.
func (s *execServer) proxy(r *http.Request) (*url.URL, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	deadline, _ := r.Context().Deadline()
	s.deadlines = append(s.deadlines, time.Until(deadline))
	return nil, nil
}

func (s *execServer) serve(w http.ResponseWriter, r *http.Request) {
	isWebSocket := wsstream.IsWebSocketRequest(r)
	if isWebSocket && s.protocol == overSPDY {
		http.Error(w, "no WebSockets here", http.StatusBadRequest)
		return
	}
	program := strings.Join(r.URL.Query()["command"], " ")
	s.lock.Lock()
	s.programs, s.requests = append(s.programs, program), append(s.requests, r)
	s.lock.Unlock()
	say := s.answer(program)
	switch {
	case say.instead == neverUpgrade:
		s.hang(r.Context().Done())
	case say.instead == refusesOnAndOn:
		w.WriteHeader(http.StatusForbidden)
		writeOn(w)
	case isWebSocket:
		s.webSockets(w, r, say)
	default:
		s.spdy(w, r, say)
	}
}

// hang waits for the end of the connection.
func (s *execServer) hang(closed <-chan struct{}) {
	s.hung <- struct{}{}
	select {
	case <-closed:
		s.left <- struct{}{}
	case <-s.stop:
	}
}

func (s *execServer) webSockets(w http.ResponseWriter, r *http.Request, say said) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{remotecommand.StreamProtocolV5Name: {
		Binary: true,
		Channels: []wsstream.ChannelType{
			wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.IgnoreChannel,
		},
	}})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, streams[remotecommand.StreamStdIn])
		close(closed)
	}()
	s.play(r, say, closed, streams[remotecommand.StreamStdOut], streams[remotecommand.StreamStdErr], streams[remotecommand.StreamErr])
}

func (s *execServer) spdy(w http.ResponseWriter, r *http.Request, say said) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return
	}
	type arrived struct {
		httpstream.Stream
		replied <-chan struct{}
	}
	arrivals := make(chan arrived, 3)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
		arrivals <- arrived{stream, replied}
		return nil
	})
	defer func() { _ = conn.Close() }()
	streams := map[string]io.Writer{}
	for len(streams) < cap(arrivals) {
		select {
		case stream := <-arrivals:
			<-stream.replied
			streams[stream.Headers().Get(corev1.StreamType)] = stream
		case <-conn.CloseChan(): // The others do not arrive any more.
			return
		}
	}
	closed := make(chan struct{})
	go func() {
		<-conn.CloseChan()
		close(closed)
	}()
	s.play(r, say, closed, streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeStderr], streams[corev1.StreamTypeError])
}

// play is the program.
func (s *execServer) play(r *http.Request, say said, closed <-chan struct{}, stdout, stderr, status io.Writer) {
	_, _ = io.WriteString(stdout, say.stdout)
	_, _ = io.WriteString(stderr, say.stderr)
	switch say.instead {
	case cuts:
		_ = r.Context().Value(connectionKey{}).(net.Conn).Close()
		return
	case hangs:
		s.hang(closed)
		return
	}
	result := metav1.Status{Status: metav1.StatusSuccess}
	if say.code != 0 {
		result = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
				Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(say.code),
			}}},
		}
	}
	if err := json.NewEncoder(status).Encode(result); err != nil {
		panic(err)
	}
}

// asked are the programs that were to be run.
func (s *execServer) asked() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.programs)
}

// pods are those in which something was to be run, each once.
func (s *execServer) pods() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	var names []string
	for _, r := range s.requests {
		names = append(names, strings.Split(r.URL.Path, "/")[6])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// expectManners expects that every request came from the connection of the ClusterCache.
func (s *execServer) expectManners(g *WithT, pod string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, r := range s.requests {
		g.Expect(r.UserAgent()).To(Equal("the-user-agent"))
		g.Expect(r.Header.Get("Authorization")).To(Equal("Bearer " + token))
		g.Expect(r.TLS.ServerName).To(Equal("example.com"))
		g.Expect(r.URL.Path).To(Equal("/api/v1/namespaces/openshift-etcd/pods/" + pod + "/exec"))
		g.Expect(r.URL.Query()["container"]).To(Equal([]string{"etcdctl"}))
		g.Expect(r.URL.Query()).To(And(HaveKey("stdout"), HaveKey("stderr"), Not(HaveKey("stdin")), Not(HaveKey("tty"))))
	}
}

// etcdPod is a Ready Pod of etcd on a Node.
func etcdPod(node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd-" + node, Namespace: "openshift-etcd", Labels: map[string]string{"app": "etcd"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "etcdctl"}, {Name: "etcd"}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}
