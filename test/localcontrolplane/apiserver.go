// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/client-go/rest"
)

// installedAuditPolicy records what is written to the spec of ClusterVersions, with its contents.
const installedAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Request
  resources: [{group: config.openshift.io, resources: [clusterversions]}]
- level: None
`

const auditLogName = "audit.log"

// serviceAccountIssuer names who signs tokens; no client here checks it, but kube-apiserver demands it.
const serviceAccountIssuer = "https://kubernetes.default.svc"

// APIServerOptions describe a further kube-apiserver, which plays the API of an installed cluster.
type APIServerOptions struct {
	// Name of the cluster, such as "demo". Required; unique in a control plane; a valid file name. The process is
	// called kube-apiserver-<name>.
	Name string
	// BindAddress is the loopback address to listen on: any of 127.0.0.0/8, default 127.0.0.1. With one address per
	// cluster, every cluster can have port 6443.
	BindAddress string
	// Port to listen on. Default: a free one.
	Port int
	// EtcdPrefix is where its data lives in the shared etcd, such as "/clusters/demo". Default: "/<name>". A prefix that
	// was used before finds the old data again.
	EtcdPrefix string
	// SANs are further DNS names and IP addresses that it has certificates for, such as "api.demo.example.com". The bind address and
	// localhost are always there. The names have a certificate of their own: see NextAuthority.
	SANs []string
}

// APIServer is a running kube-apiserver with its own certificate authority, RBAC authorization and no controllers. Stop
// makes the API unreachable and keeps its data; Start brings it back at the same address.
type APIServer struct {
	*Process
	ca    *authority
	url   string
	admin keyPair
	dir   string
	// public are the names by which it is called; nil when it has none but its address.
	public *publicNames
	// trusted are the certificates of the authorities that its certificates had when it was started, as PEM.
	trusted []byte
	// signingKeyFile holds the key of service-account tokens, which the kube-controller-manager needs too.
	signingKeyFile string
}

// StartAPIServer starts a kube-apiserver for an installed cluster and returns when it is ready. It is stopped with the
// control plane. Its API has what Kubernetes itself brings; install CRDs with InstallCRDs.
func (cp *ControlPlane) StartAPIServer(ctx context.Context, opts APIServerOptions) (*APIServer, error) {
	if opts.Name == "" || opts.Name != filepath.Base(opts.Name) {
		return nil, fmt.Errorf("API server name %q is not a plain file name: set APIServerOptions.Name", opts.Name)
	}
	if opts.EtcdPrefix == "" {
		opts.EtcdPrefix = "/" + opts.Name
	}
	// Without a kube-controller-manager no namespace ever gets its default ServiceAccount, so this plugin would refuse
	// every Pod.
	name := apiServerName + "-" + opts.Name
	policy := filepath.Join(cp.dir, name, "audit-policy.yaml")
	if err := writeFile(policy, []byte(installedAuditPolicy)); err != nil {
		return nil, err
	}
	public, err := newPublicNames(filepath.Join(cp.dir, name), opts.SANs)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--disable-admission-plugins=ServiceAccount",
		"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(cp.dir, name, auditLogName), "--audit-log-format=json",
		// Who plays the kubelets of its Nodes gives them an address of this type.
		"--kubelet-preferred-address-types=InternalDNS",
	}
	if public != nil {
		args = append(args, public.arg())
	}
	server, err := cp.newAPIServer(ctx, name, opts, args...)
	if err != nil {
		return nil, err
	}
	server.public, server.trusted = public, server.ca.pem
	if public != nil {
		server.trusted = slices.Concat(public.current.pem, server.ca.pem)
	}
	return server, cp.start(ctx, server.Process)
}

// URL returns the address of the API, such as https://127.0.0.1:20123.
func (s *APIServer) URL() string { return s.url }

// Config returns a client configuration with cluster-admin rights.
func (s *APIServer) Config() *rest.Config { return restConfig(s.url, s.ca, s.admin) }

// AuditLog returns the path of the audit log: what is written to the spec of ClusterVersions.
func (s *APIServer) AuditLog() string { return filepath.Join(s.dir, auditLogName) }

// CA returns the certificates of the authorities that signed the API's certificates when it was started, as PEM.
func (s *APIServer) CA() []byte { return s.trusted }

// ClientCA returns the certificate of the authority that signs client certificates, as PEM.
func (s *APIServer) ClientCA() []byte { return s.ca.pem }

// AdminKubeconfig returns a kubeconfig with cluster-admin rights for the given server address, or for URL() when it is
// empty. The API's certificates are valid for what APIServerOptions.SANs has only. It trusts CA, whatever Rotate does: nobody writes the
// installer's kubeconfig anew.
func (s *APIServer) AdminKubeconfig(server string) ([]byte, error) {
	if server == "" {
		server = s.url
	}
	return encodeKubeconfig(server, s.Name(), s.trusted, s.admin)
}

func (cp *ControlPlane) newAPIServer(ctx context.Context, name string, opts APIServerOptions, extra ...string) (*APIServer, error) {
	path, err := cp.tools.Path(ctx, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	if opts.BindAddress == "" {
		opts.BindAddress = localhost
	}
	if ip := net.ParseIP(opts.BindAddress); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("cannot bind %s to %q: only loopback addresses (127.0.0.0/8) are allowed", name, opts.BindAddress)
	}
	if opts.Port == 0 {
		if opts.Port, err = freePort(); err != nil {
			return nil, err
		}
	}
	server := &APIServer{url: "https://" + address(opts.BindAddress, opts.Port), dir: filepath.Join(cp.dir, name)}
	certificateArgs, err := server.writeCertificates(append([]string{opts.BindAddress, "localhost"}, opts.SANs...))
	if err != nil {
		return nil, err
	}
	client, err := httpClient(server.ca, server.admin)
	if err != nil {
		return nil, err
	}
	args := append(certificateArgs, cp.etcd.apiServerArgs(opts.EtcdPrefix)...)
	args = append(args,
		"--bind-address="+opts.BindAddress, "--secure-port="+strconv.Itoa(opts.Port),
		// Without it the apiserver looks for the address of the default route, and fails on a machine that has none.
		"--advertise-address="+opts.BindAddress,
		// The endpoints of the "kubernetes" Service may not be loopback addresses, and nothing uses them.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer="+serviceAccountIssuer,
		"--authorization-mode=Node,RBAC", "--profiling=false",
	)
	server.Process = cp.newProcess(processSpec{
		name: name, path: path, env: cp.serverEnv, args: append(args, extra...), ready: httpReady(client, server.url+"/readyz"),
	})
	return server, nil
}

// writeCertificates makes the server's authority, certificates and token key, and returns the flags that name them.
func (s *APIServer) writeCertificates(names []string) ([]string, error) {
	var err error
	if s.ca, err = newAuthority("local-" + filepath.Base(s.dir)); err != nil {
		return nil, err
	}
	if s.admin, err = s.ca.client(adminUser, adminGroup); err != nil {
		return nil, err
	}
	serving, err := s.ca.serving(names...)
	if err != nil {
		return nil, err
	}
	certificate, key, err := serving.write(s.dir, defaultCertificate)
	if err != nil {
		return nil, err
	}
	if err := writeFile(s.caFile(), s.ca.pem); err != nil {
		return nil, err
	}
	signingKey, err := newSigningKey()
	if err != nil {
		return nil, err
	}
	s.signingKeyFile = filepath.Join(s.dir, "service-account.key")
	return []string{
		"--tls-cert-file=" + certificate, "--tls-private-key-file=" + key, "--client-ca-file=" + s.caFile(),
		"--service-account-key-file=" + s.signingKeyFile, "--service-account-signing-key-file=" + s.signingKeyFile,
	}, writeFile(s.signingKeyFile, signingKey)
}

func (s *APIServer) caFile() string { return filepath.Join(s.dir, "ca.crt") }
