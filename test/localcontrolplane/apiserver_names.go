// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A server shows the certificate of file defaultCertificate to clients that call it by its address, and that of namesCertificate to those
// that call it by one of its names. Both are without the endings .crt and .key.
const (
	defaultCertificate = "server"
	namesCertificate   = "names"
)

// namesSigner is what OpenShift calls the authority that signs the certificate for the names of the load balancer.
const namesSigner = "openshift-kube-apiserver-operator_loadbalancer-serving-signer"

// publicNames are the DNS names of an installed cluster's API. As in OpenShift, the certificate for them has an authority of its own, which
// is rotated while the server runs.
type publicNames struct {
	dir   string
	names []string

	// mu guards the rest, and the files of the certificate.
	mu            sync.Mutex
	current, next *authority
}

// newPublicNames returns those of the names that are no addresses, with a certificate; nil when there are none.
func newPublicNames(dir string, names []string) (*publicNames, error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return net.ParseIP(name) != nil })
	if len(names) == 0 {
		return nil, nil // A server without names has no certificate for them.
	}
	p := &publicNames{dir: dir, names: names}
	var err error
	if p.current, err = newAuthority(signerName()); err != nil {
		return nil, err
	}
	return p, p.sign()
}

// signerName is another one for each authority: in OpenShift, too, it ends with the time.
func signerName() string { return fmt.Sprintf("%s@%d", namesSigner, time.Now().UnixNano()) }

// sign makes a new certificate for the names. The server loads it when its files change.
func (p *publicNames) sign() error {
	pair, err := p.current.serving(p.names...)
	if err != nil {
		return err
	}
	_, _, err = pair.write(p.dir, namesCertificate)
	return err
}

// arg is the server's flag that names the certificate.
func (p *publicNames) arg() string {
	file := filepath.Join(p.dir, namesCertificate)
	return "--tls-sni-cert-key=" + file + ".crt," + file + ".key:" + strings.Join(p.names, ",")
}

// NextAuthority makes the authority that Rotate signs with, and returns its certificate as PEM. Clients that trust it as well as the one of
// now do not notice the change.
func (s *APIServer) NextAuthority() ([]byte, error) {
	if s.public == nil {
		return nil, fmt.Errorf("%s has no names: set APIServerOptions.SANs", s.Name())
	}
	next, err := newAuthority(signerName())
	if err != nil {
		return nil, err
	}
	s.public.mu.Lock()
	defer s.public.mu.Unlock()
	s.public.next = next
	return next.pem, nil
}

// Rotate signs the certificate for the server's names with the next authority. The server shows it when it has seen the files change;
// connections that there are stay.
func (s *APIServer) Rotate() error {
	if s.public == nil {
		return fmt.Errorf("%s has no names: set APIServerOptions.SANs", s.Name())
	}
	s.public.mu.Lock()
	defer s.public.mu.Unlock()
	if s.public.next == nil {
		return errors.New("there is no next authority: call NextAuthority, and let the clients know it")
	}
	s.public.current, s.public.next = s.public.next, nil
	return s.public.sign()
}

// Certificate returns the certificate that the server shows now to a client, for a front that answers in the server's place. Which one it
// is depends on the name by which the client calls.
func (s *APIServer) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := defaultCertificate
	if s.public != nil {
		s.public.mu.Lock()
		defer s.public.mu.Unlock()
		if slices.Contains(s.public.names, hello.ServerName) {
			name = namesCertificate
		}
	}
	file := filepath.Join(s.dir, name)
	pair, err := tls.LoadX509KeyPair(file+".crt", file+".key")
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of %s: %w", s.Name(), err)
	}
	return &pair, nil
}
