// SPDX-License-Identifier: Apache-2.0

// Package discovery fetches discovery ignitions. It is the only code of the managers that talks to a server which is no Kubernetes API.
package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/coreos/ignition/v2/config"
	corev1 "k8s.io/api/core/v1"

	"github.com/capi-openshift/agent-providers/bootstrap/internal/ignition"
	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// MaxSize is the size of the largest discovery ignition: with its format it has to fit into a Secret.
const MaxSize = corev1.MaxSecretSize - len(ignition.Format)

// defaultTimeout is that of a Client without one.
const defaultTimeout = 30 * time.Second

// Error is a download that failed, in words for a condition: they name neither the URL nor the content and are the same in every attempt.
type Error struct {
	// Invalid is true when something was served that cannot be used.
	Invalid bool
	// Message says what is wrong.
	Message string

	// cause is for the log.
	cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %v", e.Message, e.cause)
}

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return e.cause }

// Client fetches discovery ignitions. The zero value trusts the system's certificates.
type Client struct {
	// CAFile is a file of PEM certificates that are trusted besides the system's. It is read before each download, so that it may change.
	CAFile string
	// Timeout bounds a download; 0 is 30 s.
	Timeout time.Duration
	// UserAgent is how the manager names itself to assisted-service; empty is Go's own.
	UserAgent string
}

// Fetch downloads a discovery ignition and checks that it is one. URLs are those of an InfraEnv's status and hold a token.
func (c *Client) Fetch(ctx context.Context, rawURL string) ([]byte, error) {
	if parsed, err := url.Parse(rawURL); err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, &Error{Invalid: true, Message: "the InfraEnv's status.bootArtifacts.discoveryIgnitionURL is no URL of HTTP or HTTPS"}
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, err := c.download(ctx, rawURL)
	if err != nil {
		return nil, describe(err, timeout)
	}
	if err := check(data); err != nil {
		return nil, err
	}
	return data, nil
}

// limits of a discovery ignition. The service's own have some hundred values; each takes up to 20 KiB while ignition checks it.
var limits = untrusted.Limits{Bytes: MaxSize, Values: 2000}

// check says why a download is no discovery ignition; nil when it is one.
func check(data []byte) error {
	if len(data) > MaxSize {
		return &Error{
			Invalid: true,
			Message: fmt.Sprintf(
				"it is larger than the %d bytes that fit into a Secret: make the additions to the discovery ignition and the trust bundle smaller",
				MaxSize,
			),
		}
	}
	if err := limits.JSON(data); err != nil {
		return &Error{Invalid: true, Message: fmt.Sprintf("%v: make the additions to the discovery ignition smaller", err)}
	}
	// The report would quote the content.
	if _, report, err := config.Parse(data); err != nil || report.IsFatal() {
		return &Error{
			Invalid: true,
			Message: "the server answers with something that is no valid ignition config: look at what stands between the manager and " +
				"assisted-service, such as a proxy",
		}
	}
	return nil
}

// download reads one byte more than is allowed at most.
func (c *Client) download(ctx context.Context, rawURL string) (_ []byte, reterr error) {
	client, err := c.httpClient()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return nil, withoutURL(err)
	}
	if c.UserAgent != "" {
		request.Header.Set("User-Agent", c.UserAgent)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer func() { reterr = errors.Join(reterr, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, &Error{Message: fmt.Sprintf("the server answers HTTP %d: look at the log of assisted-service", response.StatusCode)}
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, int64(MaxSize)+1))
	if err != nil {
		return nil, withoutURL(err)
	}
	return data, nil
}

// httpClient is made for one download; there are few of them. Redirects are not followed: they would carry the token elsewhere.
func (c *Client) httpClient() (*http.Client, error) {
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		},
	}, nil
}

// roots are nil, which is the system's, when there is no file.
func (c *Client) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, &Error{Message: "the manager cannot read the file of its flag --assisted-ca-file", cause: err}
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, &Error{Message: "the file of the manager's flag --assisted-ca-file holds no PEM certificate"}
	}
	return roots, nil
}

// withoutURL takes the URL out of an error of net/http.
func withoutURL(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}

// describe says what failed. The causes themselves are for the log only: they hold port numbers, which differ in every attempt.
func describe(err error, timeout time.Duration) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var (
		untrusted *tls.CertificateVerificationError
		unknown   *net.DNSError
		network   net.Error
	)
	message := "the server cannot be reached: look at the manager's log"
	switch {
	case errors.As(err, &untrusted):
		message = "the server's certificate is not trusted: give the manager its CA with the flag --assisted-ca-file"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		message = fmt.Sprintf("the server did not answer within %s", timeout)
	case errors.As(err, &unknown):
		message = "the name of the server cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		message = "the server refuses connections"
	}
	return &Error{Message: message, cause: err}
}
