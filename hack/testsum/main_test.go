// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestLoadOf(t *testing.T) {
	g := NewWithT(t)
	loops, args, err := loadOf([]string{"-load=2", "-race", "./..."})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(loops).To(Equal(2))
	g.Expect(args).To(Equal([]string{"-race", "./..."}))

	loops, args, err = loadOf([]string{"-race"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(loops).To(BeZero())
	g.Expect(args).To(Equal([]string{"-race"}))

	_, _, err = loadOf([]string{"-load=many"})
	g.Expect(err).To(MatchError(ContainSubstring("-load=many: the number of busy loops is expected")))
}
