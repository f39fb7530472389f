// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
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
	maxReferences = 8 << 20
)

// references is the part of an ImageStream that is read.
type references struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Tags []struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"tags"`
	} `json:"spec"`
}

// inspect finds the versions of a release image.
func inspect(image v1.Image) (Release, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return Release{}, fmt.Errorf("read the configuration of the image: %w", err)
	}
	found := Release{Version: config.Config.Labels[labelRelease], Architectures: architectures(config.Architecture)}
	if found.Version == "" {
		return Release{}, ErrNoRelease
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
	if found.KubernetesVersion == "" {
		return Release{}, fmt.Errorf("%w: it does not tell its Kubernetes version", ErrNoRelease)
	}
	return found, nil
}

// architectures are those of names that container images have, each once and in order.
func architectures(names ...string) []bootstrapv1.CPUArchitecture {
	var found []bootstrapv1.CPUArchitecture
	for _, name := range names {
		if name != "" && name != architectureUnknown {
			found = append(found, bootstrapv1.CPUArchitectureOf(name))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// readReferences returns the references in a layer, nil when it has none.
func readReferences(layer v1.Layer) (*references, error) {
	size, err := layer.Size()
	if err != nil {
		return nil, fmt.Errorf("read the size of a layer: %w", err)
	}
	if size > maxLayer {
		return nil, nil
	}
	unpacked, err := layer.Uncompressed()
	if err != nil {
		return nil, fmt.Errorf("read a layer: %w", err)
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
	data, err := io.ReadAll(io.LimitReader(file, maxReferences))
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", referencesFile, err)
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
