// SPDX-License-Identifier: Apache-2.0

package scale

import "math"

// point is a measure at a size.
type point struct{ size, value float64 }

// exponent is the b of value = a · size^b that fits the points best: by least squares, in the logarithms of both. It is 1 where the
// measure grows with the size, 2 where it grows with its square. ok is false for fewer than three sizes, and for a measure that is zero
// somewhere, which grows by no power.
func exponent(points []point) (_ float64, ok bool) {
	logs := make([]point, len(points))
	for i, p := range points {
		if p.size <= 0 || p.value <= 0 {
			return 0, false
		}
		logs[i] = point{math.Log(p.size), math.Log(p.value)}
	}
	fitted, ok := lineThrough(logs)
	return fitted.Slope, ok
}

// Line is value = Intercept + Slope · size.
type Line struct {
	// Intercept is what there is without clusters, and Slope what each adds.
	Intercept float64 `json:"intercept"`
	Slope     float64 `json:"slope"`
	// Fit is the share of the differences between the values that the line explains (R²): 1 when all are on it.
	Fit float64 `json:"fit"`
}

// At is the value at a size.
func (l Line) At(size float64) float64 { return l.Intercept + l.Slope*size }

// lineThrough fits a line by least squares. ok is false for fewer than three different sizes: two points are always on a line.
func lineThrough(points []point) (_ Line, ok bool) {
	sizes := map[float64]bool{}
	var n, meanX, meanY float64
	for _, p := range points {
		sizes[p.size] = true
		n++
		meanX += p.size
		meanY += p.value
	}
	if len(sizes) < 3 {
		return Line{}, false
	}
	meanX, meanY = meanX/n, meanY/n
	var xx, xy, yy float64
	for _, p := range points {
		dx, dy := p.size-meanX, p.value-meanY
		xx += dx * dx
		xy += dx * dy
		yy += dy * dy
	}
	slope := xy / xx
	fit := 1.0
	if yy > 0 {
		fit = xy * xy / (xx * yy)
	}
	return Line{Intercept: meanY - slope*meanX, Slope: slope, Fit: fit}, true
}

// percentile is the value that this share of the sorted values does not exceed; zero when there are none.
func percentile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
