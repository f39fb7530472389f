// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test wrote with a file of its folder testdata.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files before the tests compare with them")

// Compare fails the test when the file testdata/<name> does not hold got. With -update it writes the file first.
func Compare(tb testing.TB, name, got string) {
	tb.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s has changed; run the test with -update if that is meant (-want +got):\n%s", path, diff)
	}
}
