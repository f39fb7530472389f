// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

// TestFlagsOfTheOperator (OP-4): the Cluster API operator edits these arguments in the Deployment, so they must parse.
func TestFlagsOfTheOperator(t *testing.T) {
	g := NewWithT(t)
	var o Options
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o.AddFlags(fs)
	o.AddClusterCacheFlags(fs)
	g.Expect(fs.Parse([]string{
		"--leader-elect=true", "--diagnostics-address=:8443", "--insecure-diagnostics=true", "--webhook-port=9443", "--webhook-cert-dir=/certs",
		"--health-addr=:9440", "--profiler-address=localhost:6060", "--sync-period=1m", "--v=4", "--max-concurrent-reconciles=3", "--namespace=ns",
		"--watch-filter=x", "--leader-elect-lease-duration=10s", "--tls-min-version=VersionTLS13", "--remote-conditions-grace-period=3m",
	})).To(Succeed())
	g.Expect(o.Validate()).To(Succeed())
	g.Expect(o.Concurrency).To(Equal(3))
	g.Expect(o.SyncPeriod).To(Equal(time.Minute))
	g.Expect(o.Diagnostics.InsecureDiagnostics).To(BeTrue())
}

func TestValidate(t *testing.T) {
	for flag, message := range map[string]string{
		"--remote-conditions-grace-period=1m": "at least 2m",
		"--max-concurrent-reconciles=0":       "at least 1",
	} {
		g := NewWithT(t)
		var o Options
		fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
		o.AddFlags(fs)
		o.AddClusterCacheFlags(fs)
		g.Expect(fs.Parse([]string{flag})).To(Succeed())
		g.Expect(o.Validate()).To(MatchError(ContainSubstring(message)), flag)
	}
}
