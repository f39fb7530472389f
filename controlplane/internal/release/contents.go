// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

const (
	// labelRelease is the label of every release image, with its version.
	labelRelease = "io.openshift.release"
	// labelVersions tells the versions of what is in an image, as name=version with commas between; the annotations of references have it too.
	labelVersions = "io.openshift.build.versions"
	// referencesFile lists the images of a release. It is in the last layer.
	referencesFile = "release-manifests/image-references"
	// kubernetesTag is the reference whose Kubernetes version is that of the kubelets.
	kubernetesTag = "hyperkube"
	// architectureUnknown is that of what is no image, in a list of images.
	architectureUnknown = "unknown"

	// maxLayer is the size, compressed, up to which a layer is looked into: that with the references has about one MiB, those of the
	// operating system below it a hundred.
	maxLayer = 32 << 20
	// maxUnpacked is how much of an unpacked layer is read, and maxReferences how much of the file.
	maxUnpacked   = 256 << 20
	maxReferences = 4 << 20
	// maxDocument is the size up to which a manifest, or the configuration of an image, is read. They have some KiB; unpacked, one of them
	// takes three hundred times as much memory.
	maxDocument = 128 << 10
	// maxWindow is how far back a layer compressed with zstd may refer, which is kept in memory. It is what every decompressor has to support.
	maxWindow = 8 << 20

	// maxVersion, maxArchitectures and maxArchitecture are what status has room for.
	maxVersion       = 256
	maxArchitectures = 16
	maxArchitecture  = 32
)

// referencesLimits are those of the file of references, which has a hundred values for each of some two hundred images at most.
var referencesLimits = untrusted.Limits{Bytes: maxReferences, Values: 100_000}

// references is the part of an ImageStream that is read.
type references struct {
	Spec struct {
		Tags []struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"tags"`
	} `json:"spec"`
}

// inspect finds the versions of a release image.
func inspect(image v1.Image) (Release, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return Release{}, fmt.Errorf("read the manifest of the image: %w", err)
	}
	if manifest.Config.Size < 0 || manifest.Config.Size > maxDocument {
		return Release{}, fmt.Errorf("%w: its configuration has %d bytes", ErrNoRelease, manifest.Config.Size)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return Release{}, fmt.Errorf("read the configuration of the image: %w", err)
	}
	found := Release{Version: config.Config.Labels[labelRelease], Architectures: architectures(config.Architecture)}
	if !isVersion(found.Version) {
		return Release{}, fmt.Errorf("%w: its label %s tells no version", ErrNoRelease, labelRelease)
	}
	layers, err := image.Layers()
	if err != nil {
		return Release{}, fmt.Errorf("read the layers of the image: %w", err)
	}
	for _, layer := range slices.Backward(layers) {
		list, err := readReferences(layer)
		if err != nil {
			return Release{}, err
		}
		if list != nil {
			found.KubernetesVersion = list.kubernetesVersion()
			break
		}
	}
	if !isVersion(strings.TrimPrefix(found.KubernetesVersion, "v")) {
		return Release{}, fmt.Errorf("%w: it does not tell its Kubernetes version", ErrNoRelease)
	}
	return found, nil
}

// architectures are those of names that container images have, each once and in order.
func architectures(names ...string) []bootstrapv1.CPUArchitecture {
	var found []bootstrapv1.CPUArchitecture
	for _, name := range names {
		if name != "" && name != architectureUnknown && len(name) <= maxArchitecture {
			found = append(found, bootstrapv1.CPUArchitectureOf(name))
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), maxArchitectures)]
}

// isVersion reports whether a text of an image is a version that status has room for.
func isVersion(text string) bool {
	_, err := semver.Parse(text)
	return err == nil && len(text) < maxVersion
}

// readReferences returns the references in a layer, nil when it has none. It reads the layer to its end, where the registry library
// compares the digest: what was found before may be anybody's.
func readReferences(layer v1.Layer) (*references, error) {
	size, err := layer.Size()
	if err != nil {
		return nil, fmt.Errorf("read the size of a layer: %w", err)
	}
	if size > maxLayer {
		return nil, nil
	}
	packed, err := layer.Compressed()
	if err != nil {
		return nil, fmt.Errorf("read a layer: %w", err)
	}
	defer packed.Close()
	list, errList := findReferences(packed)
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return nil, fmt.Errorf("read a layer: %w", err)
	}
	return list, errList
}

// unpack reads what may be compressed with gzip or zstd. The registry library would give zstd as much memory as the layer asks for.
func unpack(packed io.Reader) (io.ReadCloser, error) {
	begin := bufio.NewReader(packed)
	magic, err := begin.Peek(len(zstdMagic))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case bytes.HasPrefix(magic, gzipMagic):
		return gzip.NewReader(begin)
	case bytes.Equal(magic, zstdMagic):
		decoder, err := zstd.NewReader(begin, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	default:
		return io.NopCloser(begin), nil
	}
}

// gzipMagic and zstdMagic are the first bytes of what they have compressed.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// findReferences returns the references in a compressed archive, nil when it has none.
func findReferences(packed io.Reader) (*references, error) {
	unpacked, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack a layer: %w", err)
	}
	defer unpacked.Close()
	files := tar.NewReader(io.LimitReader(unpacked, maxUnpacked))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpack a layer: %w", err)
		}
		if strings.TrimPrefix(header.Name, "./") == referencesFile {
			return parseReferences(files)
		}
	}
}

func parseReferences(file io.Reader) (*references, error) {
	data, err := io.ReadAll(io.LimitReader(file, maxReferences+1))
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", referencesFile, err)
	}
	if err := referencesLimits.JSON(data); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoRelease, referencesFile, err)
	}
	list := &references{}
	if err := json.Unmarshal(data, list); err != nil {
		return nil, fmt.Errorf("%w: its %s is no ImageStream", ErrNoRelease, referencesFile)
	}
	return list, nil
}

// kubernetesVersion is that of the kubelets, else the first that an image tells of.
func (r *references) kubernetesVersion() string {
	var first string
	for _, tag := range r.Spec.Tags {
		version := kubernetesOf(tag.Annotations[labelVersions])
		if version != "" && tag.Name == kubernetesTag {
			return version
		}
		if first == "" {
			first = version
		}
	}
	return first
}

// kubernetesOf is the Kubernetes version in a list of versions, with its v; empty when there is none.
func kubernetesOf(versions string) string {
	for part := range strings.SplitSeq(versions, ",") {
		if version, found := strings.CutPrefix(strings.TrimSpace(part), "kubernetes="); found && version != "" {
			return "v" + strings.TrimPrefix(version, "v")
		}
	}
	return ""
}
