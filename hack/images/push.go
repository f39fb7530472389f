// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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

// written is a layout that was written earlier, and where it belongs.
type written struct {
	top        v1.ImageIndex
	repository name.Repository
	tag        string
	images     v1.Descriptor   // the index of the images
	artifacts  []v1.Descriptor // what is said about them
}

// eachLayout calls do for every layout in a folder.
func eachLayout(dir, registry string, do func(written) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find the images, which make images writes: %w", err)
	}
	found := false
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		found = true
		w, err := open(filepath.Join(dir, entry.Name()), registry+"/"+entry.Name())
		if err == nil {
			err = do(w)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	if !found {
		return fmt.Errorf("no images are in %s: make images writes them", dir)
	}
	return nil
}

// open reads which manifests are in a layout.
func open(dir, repository string) (written, error) {
	target, err := name.NewRepository(repository)
	if err != nil {
		return written{}, fmt.Errorf("read %q: %w", repository, err)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return written{}, fmt.Errorf("open the layout: %w", err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return written{}, fmt.Errorf("read the layout: %w", err)
	}
	w := written{top: top, repository: target}
	for _, descriptor := range manifest.Manifests {
		if tag, tagged := descriptor.Annotations[specs.AnnotationRefName]; tagged {
			w.tag, w.images = tag, descriptor
			continue
		}
		w.artifacts = append(w.artifacts, descriptor)
	}
	if w.tag == "" {
		return written{}, errors.New("the layout has no image with a tag")
	}
	return w, nil
}

// pushAll sends the layouts in a folder to a registry, with the credentials of docker or podman, and says where each image is.
func pushAll(ctx context.Context, dir, registry string, progress io.Writer) error {
	return eachLayout(dir, registry, func(w written) error {
		if err := w.push(remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return err
		}
		fmt.Fprintf(progress, "%s@%s\n", w.repository.Tag(w.tag), w.images.Digest)
		return nil
	})
}

// push sends first the images, then what is said about them, for which the registry needs to know the images.
func (w written) push(options ...remote.Option) error {
	images, err := w.top.ImageIndex(w.images.Digest)
	if err != nil {
		return fmt.Errorf("read the images: %w", err)
	}
	if err := remote.WriteIndex(w.repository.Tag(w.tag), images, options...); err != nil {
		return fmt.Errorf("send the images: %w", err)
	}
	for _, descriptor := range w.artifacts {
		statement, err := w.top.Image(descriptor.Digest)
		if err != nil {
			return fmt.Errorf("read %s: %w", descriptor.ArtifactType, err)
		}
		if err := remote.Write(w.repository.Digest(descriptor.Digest.String()), statement, options...); err != nil {
			return fmt.Errorf("send %s: %w", descriptor.ArtifactType, err)
		}
	}
	return nil
}

// blob returns the bytes of a layer as they are kept, whether they are compressed or not.
func blob(image v1.Image, digest v1.Hash) (content []byte, err error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	return io.ReadAll(reader)
}
