// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	// signingConfig names no transparency log and no timestamp authority: whoever has the key vouches for the images, and nothing is
	// published about them.
	signingConfig = `{"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json", "rekorTlogConfig": {}, "tsaConfig": {}}`
	// trustedRoot names nobody. Without one cosign asks Sigstore on the internet whom to trust.
	trustedRoot = `{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`
)

// signer signs with cosign and a key.
type signer struct {
	program, key string
	flags        []string // of cosign; those that keep out of Sigstore's public services where there are none
}

// signAll signs the images in a registry that were pushed from the layouts in a folder, and what is said about them.
func (s signer) signAll(ctx context.Context, dir, registry string) (err error) {
	if s.key == "" {
		return errors.New("a key to sign with is required: cosign generate-key-pair makes one")
	}
	if s.program, err = exec.LookPath(s.program); err != nil {
		return fmt.Errorf("find cosign, which signs: %w", err)
	}
	temporary, err := os.MkdirTemp("", "sign-")
	if err != nil {
		return fmt.Errorf("make a folder for what is signed: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if len(s.flags) == 0 {
		config, root := filepath.Join(temporary, "signing-config.json"), filepath.Join(temporary, "trusted-root.json")
		s.flags = []string{"--signing-config=" + config, "--trusted-root=" + root}
		err = errors.Join(os.WriteFile(config, []byte(signingConfig), 0o600), os.WriteFile(root, []byte(trustedRoot), 0o600))
		if err != nil {
			return fmt.Errorf("write the configuration of cosign: %w", err)
		}
	}
	return eachLayout(dir, registry, func(w written) error { return s.sign(ctx, w, temporary) })
}

// sign signs the index and every image in it, and attests to each image what the layout says about it.
func (s signer) sign(ctx context.Context, w written, temporary string) error {
	if err := s.cosign(ctx, "sign", "--recursive", w.repository.Digest(w.images.Digest.String()).String()); err != nil {
		return err
	}
	for _, descriptor := range w.artifacts {
		a, err := readArtifact(w.top, descriptor)
		if err != nil {
			return err
		}
		file := filepath.Join(temporary, "predicate.json")
		kind, predicate, err := a.predicate()
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, predicate, 0o600); err != nil {
			return fmt.Errorf("write what is signed: %w", err)
		}
		subject := w.repository.Digest(a.subject.String()).String()
		if err := s.cosign(ctx, "attest", "--type="+kind, "--predicate="+file, subject); err != nil {
			return err
		}
	}
	return nil
}

// cosign runs a command of cosign, which asks for the password of the key unless the environment has it.
func (s signer) cosign(ctx context.Context, command string, arguments ...string) error {
	all := append([]string{command, "--yes", "--key=" + s.key}, s.flags...)
	cmd := exec.CommandContext(ctx, s.program, append(all, arguments...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cosign %s %s: %w", command, arguments[len(arguments)-1], err)
	}
	return nil
}

// said is an artifact of a layout: a document about an image.
type said struct {
	kind    string
	content []byte
	subject v1.Hash
}

func readArtifact(top v1.ImageIndex, descriptor v1.Descriptor) (said, error) {
	image, err := top.Image(descriptor.Digest)
	if err != nil {
		return said{}, fmt.Errorf("read %s: %w", descriptor.ArtifactType, err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return said{}, fmt.Errorf("read %s: %w", descriptor.ArtifactType, err)
	}
	if manifest.Subject == nil || len(manifest.Layers) != 1 {
		return said{}, fmt.Errorf("%s is not one document about one image", descriptor.Digest)
	}
	content, err := blob(image, manifest.Layers[0].Digest)
	if err != nil {
		return said{}, fmt.Errorf("read %s: %w", descriptor.ArtifactType, err)
	}
	return said{kind: manifest.ArtifactType, content: content, subject: manifest.Subject.Digest}, nil
}

// predicate returns cosign's name for what is said, and what it makes a statement of its own of.
func (a said) predicate() (kind string, content []byte, err error) {
	switch a.kind {
	case spdxType:
		return "spdxjson", a.content, nil
	case inTotoType:
		statement := &intoto.Statement{}
		if err := protojson.Unmarshal(a.content, statement); err != nil {
			return "", nil, fmt.Errorf("read the provenance of %s: %w", a.subject, err)
		}
		content, err := json.Marshal(statement.GetPredicate().AsMap())
		return "slsaprovenance1", content, err
	}
	return "", nil, fmt.Errorf("%s about %s is nothing that is signed", a.kind, a.subject)
}
