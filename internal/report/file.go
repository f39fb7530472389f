// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"os"
)

// FileName is how the page of a cluster is called.
func FileName(cluster string) string { return "report-" + cluster + ".html" }

// WriteFile makes a page and writes it to a file, which is for its owner alone: names and addresses of hosts are nobody else's business.
// Nothing is written unless the whole page could be made.
func WriteFile(path string, in *Input) error {
	var page bytes.Buffer
	if err := New(in).Write(&page); err != nil {
		return err
	}
	if err := os.WriteFile(path, page.Bytes(), 0o600); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
