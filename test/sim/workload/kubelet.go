// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// kubeletName is the address of every Node's kubelet, of type InternalDNS: the kube-apiserver of the cluster looks for no other type.
const kubeletName = "localhost"

// kubelets answer for the kubelets of all Nodes of a cluster, as far as the kube-apiserver asks them: to run a program in a container.
type kubelets struct {
	// run runs a program in a container. It is called by many requests at once.
	run func(namespace, pod, container string, command []string) etcd.Result

	listener net.Listener
	server   *http.Server
	// stopping ends the programs that hang.
	stopping chan struct{}
}

// newKubelets listens on a free port.
func newKubelets(run func(namespace, pod, container string, command []string) etcd.Result) (*kubelets, error) {
	certificate, err := kubeletCertificate()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(kubeletName, "0"))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the kubelets: %w", err)
	}
	k := &kubelets{run: run, listener: listener, stopping: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exec/{namespace}/{pod}/{container}", k.exec)
	k.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: time.Minute,
		// SPDY needs a connection that can be taken over, which one of HTTP/2 cannot.
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}
	go func() { _ = k.server.ServeTLS(listener, "", "") }() // It returns when the server is closed.
	return k, nil
}

// port is where the kubelets listen.
func (k *kubelets) port() int32 {
	address, ok := k.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return int32(address.Port)
}

// stop ends every program.
func (k *kubelets) stop() {
	close(k.stopping)
	_ = k.server.Close()
}

// exec runs a program as a kubelet does: what it prints goes to one stream each, and how it ended to a third.
func (k *kubelets) exec(w http.ResponseWriter, r *http.Request) {
	result := k.run(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), r.URL.Query()["command"])
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV5Name, remotecommand.StreamProtocolV4Name}); err != nil {
		return
	}
	streams := make(chan stream, 3)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		streams <- stream{s, replied}
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	wanted := 1 // That of the end.
	for _, output := range []string{"output", "error"} {
		if r.URL.Query().Get(output) == "1" {
			wanted++
		}
	}
	byType, ok := k.await(conn, streams, wanted)
	if !ok {
		return
	}
	switch result.Ending {
	case etcd.Hangs:
		k.wait(conn, nil)
	case etcd.Ended:
		k.wait(conn, time.After(result.Took))
		write(byType[corev1.StreamTypeStdout], result.Stdout)
		write(byType[corev1.StreamTypeStderr], result.Stderr)
		write(byType[corev1.StreamTypeError], exitStatus(result.ExitCode))
	case etcd.Broken: // The connection ends without a word.
	}
}

// stream is a stream that the kube-apiserver has opened; replied tells when it knows that.
type stream struct {
	httpstream.Stream

	replied <-chan struct{}
}

// await takes the streams of a program, by type; ok is false when they do not come.
func (k *kubelets) await(conn httpstream.Connection, streams <-chan stream, wanted int) (byType map[string]io.WriteCloser, ok bool) {
	byType = map[string]io.WriteCloser{}
	for len(byType) < wanted {
		select {
		case s := <-streams:
			<-s.replied
			byType[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return nil, false
		case <-k.stopping:
			return nil, false
		}
	}
	return byType, true
}

// wait returns when the program has ended, or nobody waits for it any more.
func (k *kubelets) wait(conn httpstream.Connection, ended <-chan time.Time) {
	select {
	case <-ended:
	case <-conn.CloseChan():
	case <-k.stopping:
	}
}

// write sends all that there is for a stream, if it was asked for. Who does not listen any more has an answer already.
func write(to io.WriteCloser, text string) {
	if to == nil {
		return
	}
	_, _ = io.WriteString(to, text)
	_ = to.Close()
}

// exitStatus is how a kubelet says that a program ended.
func exitStatus(code int) string {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", code),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
				Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code),
			}}},
		}
	}
	text, err := json.Marshal(status)
	if err != nil {
		return "" // It is always possible.
	}
	return string(text)
}

// kubeletCertificate is signed by nobody: a kube-apiserver that knows no authority of kubelets does not check it.
func kubeletCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make the key of the kubelets: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: kubeletName}, DNSNames: []string{kubeletName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make the certificate of the kubelets: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
