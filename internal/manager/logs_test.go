// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
)

// TestLogsNoBodies: client-go logs what is in requests and responses from verbosity 8 on, Secrets and tokens among them.
func TestLogsNoBodies(t *testing.T) {
	for given, want := range map[string]int{"--v=10": 7, "--v=8": 7, "--v=7": 7, "--v=2": 2} {
		g := NewWithT(t)
		o, fs := flagsOf((*Options).AddControlPlaneFlags)
		g.Expect(fs.Parse([]string{given})).To(Succeed())
		o.LimitLogs()
		g.Expect(o.Logs.Verbosity).To(BeEquivalentTo(want), given)
	}
}

// TestLogsNoBodiesOfOneFile: neither when the verbosity is that of single files.
func TestLogsNoBodiesOfOneFile(t *testing.T) {
	g := NewWithT(t)
	o, fs := flagsOf((*Options).AddControlPlaneFlags)
	g.Expect(fs.Parse([]string{"--vmodule=request=10,round_trippers=8,controller=5"})).To(Succeed())
	o.LimitLogs()
	g.Expect(logsv1.VModuleConfigurationPflag(&o.Logs.VModule).String()).To(Equal("request=7,round_trippers=7,controller=5"))
}

// TestLogsNoBodiesLater: the verbosity of a manager that runs can be changed, within the same limit.
func TestLogsNoBodiesLater(t *testing.T) {
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	o, _ := flagsOf((*Options).AddControlPlaneFlags)
	_, metrics, err := o.diagnostics()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, c := range []struct {
		put     string
		code    int
		enabled klog.Level
	}{
		{"3", http.StatusOK, 3}, {"7", http.StatusOK, 7}, {"8", http.StatusOK, 7}, {"10", http.StatusOK, 7},
		{"99999999999", http.StatusBadRequest, 7}, {"-1", http.StatusBadRequest, 7}, {"much", http.StatusBadRequest, 7}, {"0", http.StatusOK, 0},
	} {
		g := NewWithT(t)
		answer := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPut, verbosityPath, strings.NewReader(c.put))
		metrics.ExtraHandlers[verbosityPath].ServeHTTP(answer, request)
		g.Expect(answer.Code).To(Equal(c.code), c.put)
		g.Expect(klog.V(c.enabled).Enabled()).To(BeTrue(), c.put)
		g.Expect(klog.V(c.enabled+1).Enabled()).To(BeFalse(), c.put)
	}
	o.Diagnostics.InsecureDiagnostics = true
	_, metrics, err = o.diagnostics()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(metrics.ExtraHandlers).NotTo(HaveKey(verbosityPath), "nobody is asked there who he is")
}
