// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	spdxType   = "application/spdx+json"
	inTotoType = "application/vnd.in-toto+json"
	// predicateAnnotation is in-toto's own, by which clients choose among statements without reading them.
	predicateAnnotation = "in-toto.io/predicate-type"
)

// about returns the artifacts that refer to an image: its bill of materials and its provenance.
func (s settings) about(p program, platform v1.Platform, image v1.Image, binary []byte, modules []*module) ([]v1.Image, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, fmt.Errorf("describe the image: %w", err)
	}
	materials, err := s.materials(p, platform, binary, modules)
	if err != nil {
		return nil, err
	}
	origin, err := s.provenance(p, platform, subject.Digest, modules)
	if err != nil {
		return nil, err
	}
	var artifacts []v1.Image
	for _, a := range []artifact{
		{kind: spdxType, content: materials, annotations: map[string]string{}},
		{kind: inTotoType, content: origin, annotations: map[string]string{predicateAnnotation: provenanceType}},
	} {
		a.annotations[specs.AnnotationCreated] = s.labels(p)[specs.AnnotationCreated]
		made, err := a.image(*subject)
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, made)
	}
	return artifacts, nil
}

// artifact is a document that is kept in a registry beside the image that it is about.
type artifact struct {
	kind        string
	content     []byte
	annotations map[string]string
}

// image returns an artifact in the form that the image specification recommends: one layer, an empty configuration, and its subject.
func (a artifact) image(subject v1.Descriptor) (v1.Image, error) {
	layer := static.NewLayer(a.content, types.MediaType(a.kind))
	described, err := partial.Descriptor(layer)
	if err != nil {
		return nil, fmt.Errorf("describe a document: %w", err)
	}
	config := specs.DescriptorEmptyJSON
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: a.kind,
		Config: v1.Descriptor{
			MediaType: types.MediaType(config.MediaType), Size: config.Size, Data: config.Data,
			Digest: v1.Hash{Algorithm: config.Digest.Algorithm().String(), Hex: config.Digest.Encoded()},
		},
		Layers:      []v1.Descriptor{*described},
		Annotations: a.annotations,
		// Where the image is used does not belong to its digest.
		Subject: &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of a document: %w", err)
	}
	return partial.CompressedToImage(stored{manifest: manifest, config: config.Data, layer: layer})
}

// stored is an artifact as registries keep it.
type stored struct {
	manifest, config []byte
	layer            v1.Layer
}

func (s stored) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (s stored) RawManifest() ([]byte, error) { return s.manifest, nil }

func (s stored) RawConfigFile() ([]byte, error) { return s.config, nil }

// LayerByDigest returns the only layer.
func (s stored) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return s.layer, nil }
