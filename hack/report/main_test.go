// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capi-openshift/agent-providers/internal/report"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      options
		wrong     string
	}{
		"defaults": {
			arguments: []string{"-cluster=demo"},
			want: options{
				cluster: types.NamespacedName{Namespace: "default", Name: "demo"}, out: "report-demo.html", docs: report.DefaultDocs,
			},
		},
		"all": {
			arguments: []string{"--kubeconfig", "k", "--namespace", "n", "--cluster", "c", "--out", "o.html", "--docs", "d"},
			want:      options{kubeconfig: "k", cluster: types.NamespacedName{Namespace: "n", Name: "c"}, out: "o.html", docs: "d"},
		},
		"no cluster":   {wrong: "name one Cluster"},
		"two clusters": {arguments: []string{"-cluster=a", "b"}, wrong: "name one Cluster"},
		"unknown flag": {arguments: []string{"-secrets"}, wrong: "secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			output := &bytes.Buffer{}
			opts, err := parse(test.arguments, output)
			if test.wrong != "" {
				g.Expect(err).To(HaveOccurred())
				g.Expect(output.String()).To(ContainSubstring(test.wrong))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(opts).To(Equal(test.want))
		})
	}
}

// TestNoHub: without a management cluster there is an error and no file.
func TestNoHub(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	opts := options{kubeconfig: filepath.Join(folder, "none"), out: filepath.Join(folder, "page.html")}
	g.Expect(run(t.Context(), opts)).To(MatchError(ContainSubstring("cannot use the kubeconfig")))
	_, err := os.Stat(opts.out)
	g.Expect(os.IsNotExist(err)).To(BeTrue())
}
