// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// rootsFile is where Go looks first for the authorities that it trusts.
	rootsFile   = "etc/ssl/certs/ca-certificates.crt"
	managerFile = "manager"
)

// roots returns Mozilla's authorities as PEM. Those that it trusts only up to a day are left out: a file cannot say so.
func roots() []byte {
	out := &bytes.Buffer{}
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// layer returns files as a layer. They belong to root, everybody may read them, and their time is that of the sources.
func layer(files map[string][]byte, created time.Time) (v1.Layer, error) {
	archive, err := archived(files, created)
	if err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
	return tarball.LayerFromOpener(opener, tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}

func archived(files map[string][]byte, created time.Time) ([]byte, error) {
	out := &bytes.Buffer{}
	writer := tar.NewWriter(out)
	written := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFolders(writer, path.Dir(name), created, written); err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644, ModTime: created}
		if name == managerFile {
			header.Mode = 0o755
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeFolders writes a folder and those above it, unless they are written already.
func writeFolders(writer *tar.Writer, folder string, created time.Time, written map[string]bool) error {
	if written[folder] {
		return nil
	}
	written[folder] = true
	if err := writeFolders(writer, path.Dir(folder), created, written); err != nil {
		return err
	}
	return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: created})
}
