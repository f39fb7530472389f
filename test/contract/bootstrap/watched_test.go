// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestContractAlways is the verdict on the rules that were checked at every change of an object while the other tests ran. It stands in the
// last file of the package, so that it sees all of them.
func TestContractAlways(t *testing.T) {
	s := shared
	for _, tt := range []struct{ name, rule string }{
		{"BOOT-21 the Secret is labelled when it is published", "BOOT-21"},
		{"BOOT-22 the Secret has its owner when it is published", "BOOT-22"},
		{"BOOT-24 the Secret has Cluster API's type when it is published", "BOOT-24"},
		{"BOOT-25 name and flag come together, after the Secret", "BOOT-25"},
		{"BOOT-27 what is published is never taken back or renamed", "BOOT-27"},
		{"BOOT-35 a config has its finalizer before it has a part in an InfraEnv", "BOOT-35"},
		{"CORE-20 a host gets its live ISO once, and never the placeholder", "CORE-20"},
		{"CORE-22 the kubeconfig is there before an infrastructure machine is ready", "CORE-22"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			held, broken := s.always.verdict(tt.rule)
			NewWithT(t).Expect(broken).To(BeEmpty())
			NewWithT(t).Expect(held).To(BeNumerically(">", 0), "it was looked at")
		})
	}
}
