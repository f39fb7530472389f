// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const (
	// served has spaces that a renderer would not make: it has to arrive as it is.
	served = `{ "ignition": {"version": "3.1.0"},  "storage": {"files": []} }` + "\n"
	token  = "eyJhbGciOiJFUzI1NiJ9"
	query  = "/api/assisted-install/v2/infra-envs/1/downloads/files?file_name=discovery.ign&api_key=" + token
)

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestFetch(t *testing.T) {
	large := `{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,` + strings.Repeat(
		"a", MaxSize,
	) + `"}}]}}`
	tests := []struct {
		name    string
		handler http.HandlerFunc
		invalid bool
		message string
		// timeout is the shipped one when it is zero.
		timeout time.Duration
	}{
		{name: "byte for byte", handler: answer(http.StatusOK, served)},
		{name: "an error of the server", handler: answer(http.StatusNotFound, served), message: "HTTP 404"},
		{name: "a redirect would carry the token elsewhere", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.invalid/", http.StatusFound)
		}, message: "HTTP 302"},
		{name: "a proxy's page", handler: answer(http.StatusOK, "<html>"+token), invalid: true, message: "no valid ignition config"},
		{name: "JSON of something else", handler: answer(http.StatusOK, `{"kind":"Status"}`), invalid: true, message: "no valid ignition config"},
		{
			name: "a relative path", handler: answer(http.StatusOK, `{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"a"}]}}`),
			invalid: true, message: "no valid ignition config",
		},
		{name: "too large for a Secret", handler: answer(http.StatusOK, large), invalid: true, message: "larger than the"},
		{
			name: "a connection that breaks", handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			message: "cannot be reached",
		},
		{
			name: "no answer", timeout: 200 * time.Millisecond, handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			message: "did not answer within 200ms",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			data, err := (&Client{Timeout: tt.timeout}).Fetch(t.Context(), server.URL+query)
			if tt.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(data)).To(Equal(served))
				return
			}
			checkError(g, err, tt.invalid, tt.message)
		})
	}
}

func checkError(g *WithT, err error, invalid bool, message string) {
	var problem *Error
	g.Expect(errors.As(err, &problem)).To(BeTrue(), "%v", err)
	g.Expect(problem.Invalid).To(Equal(invalid))
	g.Expect(problem.Message).To(ContainSubstring(message))
	g.Expect(problem.Message).NotTo(ContainSubstring("127.0.0.1"), "ports differ from attempt to attempt")
	g.Expect(err.Error()).NotTo(ContainSubstring(token), "errors are logged")
}

func TestFetchNamesItself(t *testing.T) {
	g := NewWithT(t)
	agents := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		answer(http.StatusOK, served)(w, r)
	}))
	defer server.Close()
	_, err := (&Client{UserAgent: "manager/v1"}).Fetch(t.Context(), server.URL+query)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(agents).To(Receive(Equal("manager/v1")))
}

func TestFetchRefusesURLs(t *testing.T) {
	for _, url := range []string{"", "file:///etc/passwd", "http://", "://" + token, "http://a b/" + token} {
		_, err := (&Client{}).Fetch(t.Context(), url)
		checkError(NewWithT(t), err, true, "no URL of HTTP or HTTPS")
	}
}

func TestFetchFromNobody(t *testing.T) {
	server := httptest.NewServer(answer(http.StatusOK, served))
	server.Close()
	_, err := (&Client{}).Fetch(t.Context(), server.URL+query)
	checkError(NewWithT(t), err, false, "refuses connections")
}

// TestFetchTrust: the file is read anew before each download, so that a renewed authority needs no restart.
func TestFetchTrust(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(answer(http.StatusOK, served))
	defer server.Close()
	_, err := (&Client{}).Fetch(t.Context(), server.URL+query)
	checkError(g, err, false, "--assisted-ca-file")

	file := filepath.Join(t.TempDir(), "ca.crt")
	client := &Client{CAFile: file}
	_, err = client.Fetch(t.Context(), server.URL+query)
	checkError(g, err, false, "cannot read the file")
	g.Expect(os.WriteFile(file, []byte("none"), 0o600)).To(Succeed())
	_, err = client.Fetch(t.Context(), server.URL+query)
	checkError(g, err, false, "holds no PEM certificate")
	g.Expect(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)).To(Succeed())
	data, err := client.Fetch(t.Context(), server.URL+query)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(Equal(served))
}
