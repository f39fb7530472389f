// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

const oneReference = `{"spec":{"tags":[{"name":"hyperkube","annotations":{"io.openshift.build.versions":"kubernetes=1.34.2"}}]}}`

// archive is a layer with a file of references.
func archive(tb testing.TB, content string) []byte {
	tb.Helper()
	var files bytes.Buffer
	writer := tar.NewWriter(&files)
	err := writer.WriteHeader(&tar.Header{Name: referencesFile, Mode: 0o444, Size: int64(len(content))})
	_, errWrite := writer.Write([]byte(content))
	if err := errors.Join(err, errWrite, writer.Close()); err != nil {
		tb.Fatal(err)
	}
	return files.Bytes()
}

func gzipped(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err := writer.Write(data)
	if err := errors.Join(err, writer.Close()); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

func zstandard(tb testing.TB, window int, data []byte) []byte {
	tb.Helper()
	var packed bytes.Buffer
	writer, err := zstd.NewWriter(&packed, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(false))
	if err != nil {
		tb.Fatal(err)
	}
	_, err = writer.Write(data)
	errFlush := writer.Flush() // So that the frame does not tell its size, which would make the window smaller.
	if err := errors.Join(err, errFlush, writer.Close()); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

func TestLayers(t *testing.T) {
	plain := archive(t, oneReference)
	hostile := archive(t, `{"spec":{"tags":[`+strings.Repeat("{},", 1_000_000)+"{}]}}")
	for title, test := range map[string]struct {
		layer []byte
		want  string
	}{
		"not compressed": {layer: plain}, "gzip": {layer: gzipped(t, plain)},
		"zstd":               {layer: zstandard(t, 8<<20, plain)},
		"a window of 512 MB": {layer: zstandard(t, 512<<20, plain), want: "window size exceeded"},
		"a million images":   {layer: gzipped(t, hostile), want: "more than 100000 values"},
		"a file of 5 MiB":    {layer: gzipped(t, archive(t, strings.Repeat(" ", 5<<20))), want: "no more than 4194304 bytes are read"},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			untrustedtest.Bounded(t, func() {
				list, err := findReferences(bytes.NewReader(test.layer))
				if test.want != "" {
					g.Expect(err).To(MatchError(ContainSubstring(test.want)))
					return
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(list.kubernetesVersion()).To(Equal("v1.34.2"))
			})
		})
	}
}

func FuzzLayer(f *testing.F) {
	plain := archive(f, oneReference)
	for _, seed := range [][]byte{nil, plain, gzipped(f, plain), zstandard(f, 1<<20, plain), zstandard(f, 512<<20, plain),
		gzipped(f, make([]byte, 1<<20))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, layer []byte) {
		untrustedtest.Bounded(t, func() { _, _ = findReferences(bytes.NewReader(layer)) })
	})
}

func FuzzReferences(f *testing.F) {
	for _, seed := range []string{oneReference, `{"spec":{"tags":[` + strings.Repeat("{},", 50_000) + "{}]}}", "[[",
		`{"spec":{"tags":[{"annotations":null}]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		untrustedtest.Bounded(t, func() {
			if list, err := parseReferences(strings.NewReader(file)); err == nil {
				_ = isVersion(list.kubernetesVersion())
			}
		})
	})
}

// FuzzManifests is for the documents of images, which the registry library parses once the manager has let them pass.
func FuzzManifests(f *testing.F) {
	for _, seed := range []string{
		`{"schemaVersion":2,"config":{"size":1},"layers":[]}`, `{"manifests":[{"platform":{"architecture":"amd64"}}]}`,
		`{"config":{"Labels":{"a":"b"}}}`,
		`{"layers":[` + strings.Repeat("{},", maxDocument/3-10) + "{}]}", `{"manifests":[` + strings.Repeat("{},", maxDocument/3-10) + "{}]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		if len(document) > maxDocument {
			return
		}
		for _, parse := range []func(){
			func() { _, _ = v1.ParseManifest(strings.NewReader(document)) }, func() { _, _ = v1.ParseIndexManifest(strings.NewReader(document)) },
			func() { _, _ = v1.ParseConfigFile(strings.NewReader(document)) },
		} {
			untrustedtest.Bounded(t, parse)
		}
	})
}

func FuzzMirrors(f *testing.F) {
	for _, seed := range []string{
		"[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"a:5000/b\"\n", "[[registry]]\nprefix = \"*.io\"\n",
		"a = {b = [1, 2]}",
		strings.Repeat("[[registry]]\nlocation=\"quay.io/a\"\n", 7000), "registry = [" + strings.Repeat("{location=\"a\"},", 15_000) + "]",
		strings.Repeat("[", 200_000), "[[registrY.0]]0",
		"[[registry]]\nlocation=\"quay.io\"\nblocked=true\n[[registry.mirror]]\nlocation=\"quay.io/a\"\n",
	} {
		f.Add([]byte(seed))
	}
	image := name.MustParseReference("quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64")
	f.Fuzz(func(t *testing.T, file []byte) {
		untrustedtest.Bounded(t, func() {
			if mirrors, err := ParseMirrors(file, ErrMirrors); err == nil {
				_, _ = sources(image, []Mirrors{mirrors})
			}
		})
	})
}

func FuzzPullSecret(f *testing.F) {
	for _, seed := range []string{
		`{"auths":{"quay.io":{"auth":"YTpi"}}}`, `{"auths":{"https://docker.io/v1/":{"username":"a"}}}`, "[",
		`{"auths":{"*.io":{},"a//":{},"[a":{},"%":{},"a/v1/v2/":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	repository := name.MustParseReference("quay.io/openshift-release-dev/ocp-release").Context()
	f.Fuzz(func(t *testing.T, config []byte) {
		untrustedtest.Bounded(t, func() {
			if keys, err := newKeychain(config); err == nil {
				_, _ = keys.Resolve(repository)
			}
		})
	})
}
