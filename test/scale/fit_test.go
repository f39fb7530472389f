// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestExponent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		points []point
		want   float64
		ok     bool
	}{
		{"as the size", []point{{10, 20}, {20, 40}, {40, 80}}, 1, true},
		{"as its square", []point{{10, 100}, {20, 400}, {40, 1600}}, 2, true},
		{"not at all", []point{{10, 7}, {20, 7}, {40, 7}}, 0, true},
		{"with a constant beside it, by less than its own power", []point{{10, 110}, {20, 120}, {40, 140}}, 0.174, true},
		{"what the burst of SCALE grew by", []point{{20, 2.4}, {100, 28.6}, {300, 188.9}}, 1.6, true},
		{"two sizes are no fit", []point{{10, 20}, {20, 40}}, 0, false},
		{"nor is one size three times", []point{{10, 20}, {10, 21}, {10, 19}}, 0, false},
		{"nothing grows by no power", []point{{10, 0}, {20, 1}, {40, 2}}, 0, false},
		{"no points", nil, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got, ok := exponent(tt.points)
			g.Expect(ok).To(Equal(tt.ok))
			g.Expect(got).To(BeNumerically("~", tt.want, 0.01))
		})
	}
}

func TestLineThrough(t *testing.T) {
	g := NewWithT(t)
	fitted, ok := lineThrough([]point{{50, 150}, {200, 390}, {500, 870}, {1000, 1670}})
	g.Expect(ok).To(BeTrue())
	g.Expect(fitted.Slope).To(BeNumerically("~", 1.6, 1e-9))
	g.Expect(fitted.Intercept).To(BeNumerically("~", 70, 1e-6))
	g.Expect(fitted.Fit).To(BeNumerically("~", 1, 1e-9))
	g.Expect(fitted.At(3500)).To(BeNumerically("~", 5670, 1e-6))

	bent, ok := lineThrough([]point{{1, 1}, {2, 4}, {3, 9}, {4, 16}})
	g.Expect(ok).To(BeTrue())
	g.Expect(bent.Fit).To(And(BeNumerically(">", 0.9), BeNumerically("<", 0.99)))

	flat, ok := lineThrough([]point{{1, 5}, {2, 5}, {3, 5}})
	g.Expect(ok).To(BeTrue())
	g.Expect(flat).To(Equal(Line{Intercept: 5, Fit: 1}))

	_, ok = lineThrough([]point{{1, 1}, {2, 2}})
	g.Expect(ok).To(BeFalse())
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		sorted      []float64
		share, want float64
	}{
		{nil, 0.5, 0}, {[]float64{3}, 0.99, 3}, {[]float64{1, 2}, 0.5, 1}, {hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100},
		{hundred, 0, 1},
	} {
		NewWithT(t).Expect(percentile(tt.sorted, tt.share)).To(Equal(tt.want), "%v of %v", tt.share, tt.sorted)
	}
}
