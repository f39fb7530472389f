// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	provenanceType = "https://slsa.dev/provenance/v1"
	// buildType names the page that says how to build the same again from what the provenance holds.
	buildType = sourceURL + "/blob/main/docs/guides/images.md"
)

// provenance returns an in-toto statement of how an image was built, and from what. It has no times, so that it is the same each time.
func (s settings) provenance(p program, platform v1.Platform, digest v1.Hash, modules []*module) ([]byte, error) {
	external, err := structpb.NewStruct(map[string]any{
		"source": s.source(), "package": p.pkg, "platform": platform.String(), "version": s.version, "fips": s.fips,
	})
	if err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	internal, err := structpb.NewStruct(map[string]any{
		"flags": toAny(s.compileFlags()), "environment": toAny(s.environment(platform)), "sourceDateEpoch": s.created.Unix(),
	})
	if err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	predicate := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType: buildType, ExternalParameters: external, InternalParameters: internal, ResolvedDependencies: s.dependencies(modules),
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: s.builder, Version: map[string]string{"go": runtime.Version()}}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("check the provenance: %w", err)
	}
	fields, err := toStruct(predicate)
	if err != nil {
		return nil, err
	}
	statement := &intoto.Statement{
		Type: intoto.StatementTypeUri, PredicateType: provenanceType, Predicate: fields,
		Subject: []*intoto.ResourceDescriptor{{
			Name: s.registry + "/" + p.image, Digest: map[string]string{digest.Algorithm: digest.Hex},
		}},
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("check the statement: %w", err)
	}
	return stable(statement)
}

func (s settings) source() string { return "git+" + sourceURL + "@" + s.revision }

// dependencies are the sources, the toolchain and the modules that are linked. Files that have changed since a commit have no digest.
func (s settings) dependencies(modules []*module) []*intoto.ResourceDescriptor {
	source := &intoto.ResourceDescriptor{Uri: s.source()}
	if !strings.HasSuffix(s.revision, "-dirty") {
		source.Digest = map[string]string{"gitCommit": s.revision}
	}
	found := []*intoto.ResourceDescriptor{source}
	for _, m := range modules {
		if m.main {
			continue
		}
		dependency := &intoto.ResourceDescriptor{Uri: m.purl()}
		if sum := m.digest(); sum != "" {
			dependency.Digest = map[string]string{"dirHash1": sum}
		}
		found = append(found, dependency)
	}
	return found
}

// digest returns the module's sum of go.sum in hexadecimal: it is a SHA-256 of a list of the module's files.
func (m *module) digest() string {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.sum, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum)
}

func toAny(values []string) []any {
	all := make([]any, 0, len(values))
	for _, value := range values {
		all = append(all, value)
	}
	return all
}

func toStruct(message proto.Message) (*structpb.Struct, error) {
	data, err := protojson.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode the provenance: %w", err)
	}
	fields := &structpb.Struct{}
	if err := protojson.Unmarshal(data, fields); err != nil {
		return nil, fmt.Errorf("encode the provenance: %w", err)
	}
	return fields, nil
}

// stable encodes a message as always the same bytes, which protojson does not promise.
func stable(message proto.Message) ([]byte, error) {
	data, err := protojson.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	return json.Marshal(fields)
}
