// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// user is nobody's on any host; OpenShift runs the manager as another one.
const user = "65532:65532"

// writeLayout makes the layout of one program: an index of its images for all platforms, and what is said about each of them. It returns
// the digest of the index.
func (s settings) writeLayout(ctx context.Context, p program) (v1.Hash, error) {
	dir := filepath.Join(s.out, p.image)
	if err := removeLayout(dir); err != nil {
		return v1.Hash{}, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var statements []v1.Image
	for _, platform := range s.platforms {
		image, about, err := s.image(ctx, p, platform)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("for %s: %w", platform.String(), err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
		statements = append(statements, about...)
	}
	index, ok := mutate.Annotations(index, s.labels(p)).(v1.ImageIndex)
	if !ok {
		return v1.Hash{}, fmt.Errorf("an index with annotations is %T", index)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("begin layout %s: %w", dir, err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{specs.AnnotationRefName: s.tag()})); err != nil {
		return v1.Hash{}, fmt.Errorf("write the images to %s: %w", dir, err)
	}
	for _, statement := range statements {
		if err := path.AppendImage(statement); err != nil {
			return v1.Hash{}, fmt.Errorf("write what is said about the images to %s: %w", dir, err)
		}
	}
	return index.Digest()
}

// image makes the image of a program for one platform, and the artifacts that refer to it.
func (s settings) image(ctx context.Context, p program, platform v1.Platform) (image v1.Image, about []v1.Image, err error) {
	dir, err := os.MkdirTemp("", "images-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder to build in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, managerFile)
	if err := s.compile(ctx, p, platform, file); err != nil {
		return nil, nil, err
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read what was built: %w", err)
	}
	modules, err := s.modules(ctx, p, platform, file)
	if err != nil {
		return nil, nil, err
	}
	if image, err = s.assemble(p, platform, binary, modules); err != nil {
		return nil, nil, err
	}
	about, err = s.about(p, platform, image, binary, modules)
	return image, about, err
}

// assemble puts a program, the authorities that it trusts and the licences of what is linked into it into an image.
func (s settings) assemble(p program, platform v1.Platform, binary []byte, modules []*module) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: platform.Architecture, OS: platform.OS, Variant: platform.Variant, Created: v1.Time{Time: s.created},
		Config: v1.Config{User: user, Entrypoint: []string{"/" + managerFile}, WorkingDir: "/", Labels: s.labels(p)},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("describe the image: %w", err)
	}
	// What changes least comes first, because registries and nodes keep layers.
	for _, part := range []struct {
		comment string
		files   map[string][]byte
	}{
		{"authorities that Mozilla trusts", map[string][]byte{rootsFile: roots()}},
		{"licences of what is linked", licenceFiles(modules)},
		{"the manager", map[string][]byte{managerFile: binary}},
	} {
		content, err := layer(part.files, s.created)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: s.created}, CreatedBy: localBuilder, Comment: part.comment}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: content, History: history}); err != nil {
			return nil, fmt.Errorf("add %s: %w", part.comment, err)
		}
	}
	annotated, ok := mutate.Annotations(image, s.labels(p)).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("an image with annotations is %T", annotated)
	}
	return annotated, nil
}

// labels are those of the OCI, and are the annotations of the manifests too.
func (s settings) labels(p program) map[string]string {
	return map[string]string{
		specs.AnnotationTitle:         p.title,
		specs.AnnotationDescription:   p.description,
		specs.AnnotationVersion:       s.tag(),
		specs.AnnotationRevision:      s.revision,
		specs.AnnotationSource:        sourceURL,
		specs.AnnotationDocumentation: sourceURL + "/tree/" + s.version + "/docs",
		specs.AnnotationVendor:        "capi-openshift",
		specs.AnnotationLicenses:      "Apache-2.0",
		specs.AnnotationCreated:       s.created.Format(time.RFC3339),
	}
}
