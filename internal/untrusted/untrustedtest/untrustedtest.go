// SPDX-License-Identifier: Apache-2.0

// Package untrustedtest measures what parsers allocate. Only tests use it.
package untrustedtest

import (
	"runtime/metrics"
	"testing"
)

// MaxAllocated is what a parser may allocate for one document, garbage included. The managers' memory limit is 1 GiB.
const MaxAllocated = 64 << 20

// Bounded fails the test when parse allocates more than MaxAllocated bytes. No other test may run at the same time.
func Bounded(tb testing.TB, parse func()) {
	tb.Helper()
	before := allocated()
	parse()
	if grown := allocated() - before; grown > MaxAllocated {
		tb.Errorf("the parser allocated %d MiB, no more than %d are allowed", grown>>20, MaxAllocated>>20)
	}
}

// allocated is the number of bytes that the process has allocated since it began.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
