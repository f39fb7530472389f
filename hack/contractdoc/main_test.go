// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/hack/internal/contract"
)

func TestDocumentIsUpToDate(t *testing.T) {
	NewWithT(t).Expect(reference.Check("../..")).To(Succeed())
}

func TestEvidence(t *testing.T) {
	g := NewWithT(t)
	tests := []contract.Test{
		{Package: "api", Function: "TestContractA", Name: "CP-1 one | two"}, {Package: "test/x", Function: "TestContractB", Name: "CP-1 <three>"},
	}
	g.Expect(evidence(contract.Rule{Verdict: contract.Met}, tests)).
		To(Equal("`api` TestContractA: one \\| two<br>`test/x` TestContractB: &lt;three>"))
	g.Expect(evidence(contract.Rule{Verdict: contract.Declined, Reason: "No need."}, tests)).To(Equal("No need."))
}
