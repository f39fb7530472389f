// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

const installerKubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {server: "https://api.c.example.com:6443", certificate-authority-data: Y2E=}
- name: unused
  cluster: {server: "https://other:6443"}
contexts:
- name: admin
  context: {cluster: c, user: admin}
current-context: admin
users:
- name: admin
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}
`

func testRewriteKubeconfig(t *testing.T) {
	tests := []struct {
		name, host, endpoint, server, tlsServerName string
	}{
		{"an address", "192.0.2.5", "192.0.2.5:6443", "https://192.0.2.5:6443", "api.c.example.com"},
		{"an IPv6 address", "2001:db8::5", "[2001:db8::5]:6443", "https://[2001:db8::5]:6443", "api.c.example.com"},
		{"the API's own name", "api.c.example.com", "api.c.example.com:443", "https://api.c.example.com:443", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, err := render.RewriteKubeconfig([]byte(installerKubeconfig), tt.host, tt.endpoint, "api.c.example.com")
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(data)
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != tt.server || config.ServerName != tt.tlsServerName {
				t.Errorf("server %q, tls-server-name %q", config.Host, config.ServerName)
			}
			if string(config.CAData) != "ca" || string(config.CertData) != "cert" || string(config.KeyData) != "key" {
				t.Errorf("credentials were changed")
			}
			if strings.Contains(string(data), "unused") {
				t.Errorf("what the current context does not name was kept")
			}
		})
	}
}

func testRewriteKubeconfigRefused(t *testing.T) {
	tests := map[string]string{
		"no kubeconfig":      "\x00",
		"no current context": strings.Replace(installerKubeconfig, "current-context: admin", "", 1),
		"no such cluster":    strings.Replace(installerKubeconfig, "{cluster: c,", "{cluster: d,", 1),
		"a command": strings.Replace(installerKubeconfig, "{client-certificate-data: Y2VydA==, client-key-data: a2V5}",
			"{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}}", 1),
		"a file with the key":   strings.Replace(installerKubeconfig, "client-key-data: a2V5", "client-key: /k", 1),
		"a file with a token":   strings.Replace(installerKubeconfig, "client-key-data: a2V5", "tokenFile: /var/run/secrets/token", 1),
		"a file with the CA":    strings.Replace(installerKubeconfig, "certificate-authority-data: Y2E=", "certificate-authority: /ca", 1),
		"a file with the cert.": strings.Replace(installerKubeconfig, "client-certificate-data: Y2VydA==", "client-certificate: /c", 1),
	}
	for name, source := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := render.RewriteKubeconfig([]byte(source), "h", "h:1", "api"); err == nil {
				t.Error("was accepted")
			} else if strings.Contains(err.Error(), "a2V5") {
				t.Errorf("the error quotes credentials: %v", err)
			}
		})
	}
}
