// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"

	"sigs.k8s.io/cluster-api/util/container"
)

// defaultRegistry and developmentTag are those of the images in config/.
const (
	defaultRegistry = "ghcr.io/capi-openshift"
	developmentTag  = "dev"
)

// components returns the provider's kustomize folder as one file, with the image of the release.
func (r release) components(ctx context.Context, p provider) ([]byte, error) {
	image, err := r.image(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, r.kustomize, "build", "config/"+p.folder+"/default")
	cmd.Dir = r.root
	rendered, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("render the components of %s: %w", p.name(), withStderr(err))
	}
	return replaceImage(rendered, p.imageIn(defaultRegistry)+":"+developmentTag, image)
}

// imageIn is the provider's image in a registry, without a tag.
func (p provider) imageIn(registry string) string {
	return registry + "/" + p.folder + "-" + providerName
}

// image returns the reference of the provider's image. clusterctl's image overrides need its full form (CONTRACT CTL-17).
func (r release) image(p provider) (string, error) {
	reference := r.images[p.name()]
	if reference == "" {
		reference = p.imageIn(r.registry) + ":" + container.SemverToOCIImageTag(r.version)
	}
	image, err := container.ImageFromString(reference)
	if err != nil {
		return "", fmt.Errorf("image %q of %s is no full reference such as ghcr.io/owner/name:tag: %w", reference, p.name(), err)
	}
	if image.Tag == "" && image.Digest == "" {
		return "", fmt.Errorf("image %q of %s has neither a tag nor a digest", reference, p.name())
	}
	return reference, nil
}

// replaceImage puts image in the place of the one image of development.
func replaceImage(components []byte, development, image string) ([]byte, error) {
	development, image = "image: "+development+"\n", "image: "+image+"\n"
	if n := bytes.Count(components, []byte(development)); n != 1 {
		return nil, fmt.Errorf("the rendered components have %d lines %q, want one", n, development)
	}
	return bytes.ReplaceAll(components, []byte(development), []byte(image)), nil
}

// withStderr adds what a program said to the error with which it ended.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
