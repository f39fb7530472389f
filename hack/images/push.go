// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// pushAll sends the layouts in a folder to a registry, with the credentials of docker or podman, and says where each image is.
func pushAll(ctx context.Context, dir, registry string, progress io.Writer) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find the images, which make images writes: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		pushed, err := push(ctx, filepath.Join(dir, entry.Name()), registry+"/"+entry.Name())
		if err != nil {
			return fmt.Errorf("push %s: %w", entry.Name(), err)
		}
		fmt.Fprintln(progress, pushed)
	}
	return nil
}

// push sends a layout to a repository: first the images, then what is said about them, for which the registry needs to know the images.
func push(ctx context.Context, dir, repository string) (string, error) {
	target, err := name.NewRepository(repository)
	if err != nil {
		return "", fmt.Errorf("read %q: %w", repository, err)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return "", fmt.Errorf("open the layout: %w", err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return "", fmt.Errorf("read the layout: %w", err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	pushed := ""
	for _, descriptor := range manifest.Manifests {
		tag, tagged := descriptor.Annotations[specs.AnnotationRefName]
		if !tagged {
			if err := pushArtifact(top, target.Digest(descriptor.Digest.String()), descriptor, options); err != nil {
				return "", err
			}
			continue
		}
		images, err := top.ImageIndex(descriptor.Digest)
		if err != nil {
			return "", fmt.Errorf("read the images: %w", err)
		}
		if err := remote.WriteIndex(target.Tag(tag), images, options...); err != nil {
			return "", fmt.Errorf("send the images: %w", err)
		}
		pushed = target.Tag(tag).String() + "@" + descriptor.Digest.String()
	}
	return pushed, nil
}

func pushArtifact(top v1.ImageIndex, target name.Digest, descriptor v1.Descriptor, options []remote.Option) error {
	artifact, err := top.Image(descriptor.Digest)
	if err != nil {
		return fmt.Errorf("read %s: %w", descriptor.ArtifactType, err)
	}
	if err := remote.Write(target, artifact, options...); err != nil {
		return fmt.Errorf("send %s: %w", descriptor.ArtifactType, err)
	}
	return nil
}
