// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"path/filepath"
	"time"
)

// healthRequestTimeout is long: on a busy machine a process may be ready and answer late.
const healthRequestTimeout = 30 * time.Second

// etcd is the one etcd of a control plane; every kube-apiserver keeps its data there under a prefix of its own.
type etcd struct {
	*Process
	url               string
	certsDir          string
	caFile            string
	clientCertificate string
	clientKey         string
	// client writes objects past the kube-apiserver.
	client *http.Client
}

func (cp *ControlPlane) newEtcd(ctx context.Context) (*etcd, error) {
	path, err := cp.tools.Path(ctx, "etcd")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	e := &etcd{url: "https://" + address(localhost, port), certsDir: filepath.Join(cp.dir, "etcd", "certs")}
	trust, serverArgs, err := e.writeCertificates()
	if err != nil {
		return nil, err
	}
	e.client = &http.Client{Transport: &http.Transport{TLSClientConfig: trust, MaxIdleConnsPerHost: storing}, Timeout: healthRequestTimeout}
	e.Process = cp.newProcess(processSpec{
		name: "etcd", path: path, env: cp.serverEnv,
		args: append(serverArgs,
			"--data-dir="+filepath.Join(cp.dir, "etcd", "data"),
			"--listen-client-urls="+e.url, "--advertise-client-urls="+e.url,
			"--listen-peer-urls=http://"+address(localhost, 0),
			"--log-level=warn",
			"--unsafe-no-fsync", // nothing here has to survive a power failure, and fsync is most of etcd's time
		),
		ready: httpReady(healthClient(trust), e.url+"/health"),
	})
	return e, nil
}

// writeCertificates makes etcd's own authority, and returns what a client needs that etcd trusts, and etcd's flags: without client
// certificates every user of this machine could read the Secrets in it.
func (e *etcd) writeCertificates() (*tls.Config, []string, error) {
	ca, err := newAuthority("local-etcd")
	if err != nil {
		return nil, nil, err
	}
	e.caFile = filepath.Join(e.certsDir, "ca.crt")
	if err := writeFile(e.caFile, ca.pem); err != nil {
		return nil, nil, err
	}
	serving, err := ca.serving(localhost)
	if err != nil {
		return nil, nil, err
	}
	certificate, key, err := serving.write(e.certsDir, "server")
	if err != nil {
		return nil, nil, err
	}
	identity, err := ca.client("kube-apiserver")
	if err != nil {
		return nil, nil, err
	}
	if e.clientCertificate, e.clientKey, err = identity.write(e.certsDir, "client"); err != nil {
		return nil, nil, err
	}
	trust, err := trustIn(ca, identity)
	return trust, []string{
		"--cert-file=" + certificate, "--key-file=" + key, "--trusted-ca-file=" + e.caFile, "--client-cert-auth",
	}, err
}

// apiServerArgs returns the flags by which a kube-apiserver uses this etcd.
func (e *etcd) apiServerArgs(prefix string) []string {
	return []string{
		"--etcd-servers=" + e.url, "--etcd-prefix=" + prefix,
		"--etcd-cafile=" + e.caFile, "--etcd-certfile=" + e.clientCertificate, "--etcd-keyfile=" + e.clientKey,
	}
}

// httpClient returns a client for health checks that trusts ca and, when identity is not empty, identifies itself.
func httpClient(ca *authority, identity keyPair) (*http.Client, error) {
	trust, err := trustIn(ca, identity)
	if err != nil {
		return nil, err
	}
	return healthClient(trust), nil
}

// healthClient keeps no connection: it would go to a process that was killed meanwhile.
func healthClient(trust *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}, Timeout: healthRequestTimeout}
}

// trustIn is the TLS of a client that trusts ca and, when identity is not empty, identifies itself.
func trustIn(ca *authority, identity keyPair) (*tls.Config, error) {
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	trust := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if len(identity.key) > 0 {
		pair, err := tls.X509KeyPair(identity.certificate, identity.key)
		if err != nil {
			return nil, fmt.Errorf("cannot use a client certificate: %w", err)
		}
		trust.Certificates = []tls.Certificate{pair}
	}
	return trust, nil
}

// httpReady returns a readiness check: GET url answers 200.
func httpReady(client *http.Client, url string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("bad health check: %w", err)
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("health check failed: %w", err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("health check %s answered %s", url, response.Status)
		}
		return nil
	}
}
