// SPDX-License-Identifier: Apache-2.0

// Package coverage reads the table that says what becomes of every field of the Assisted Installer's API, and compares it with the schemas.
package coverage

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/crdschema"
)

// File is the table, relative to the repository's root.
const File = "docs/reference/coverage.yaml"

// ourCRDs are the folders of this project's CustomResourceDefinitions, relative to the repository's root.
var ourCRDs = []string{"config/bootstrap/crd/bases", "config/controlplane/crd/bases"}

// Kind is a kind in the table, with the name of its CustomResourceDefinition and the version that the managers use.
type Kind struct{ Name, CRD, Version string }

// Kinds are the kinds in the table, in the order of the document.
var Kinds = []Kind{
	{"InfraEnv", assisted.CRDInfraEnvs, "v1beta1"},
	{"Agent", assisted.CRDAgents, "v1beta1"},
	{"NMStateConfig", "nmstateconfigs.agent-install.openshift.io", "v1beta1"},
	{"AgentClusterInstall", assisted.CRDAgentClusterInstalls, "v1beta1"},
	{"ClusterDeployment", assisted.CRDClusterDeployments, "v1"},
}

// Entry says what becomes of a field and all below it.
type Entry struct {
	// Field is the field of ours that sets it, as Kind.path.
	Field string `json:"field,omitempty"`
	// Note says more about Field.
	Note string `json:"note,omitempty"`
	// Provider is how the providers set it by themselves.
	Provider string `json:"provider,omitempty"`
	// Declined is why nothing sets it.
	Declined string `json:"declined,omitempty"`
	// Unpinned fields are not in the services' releases whose Go modules are pinned.
	Unpinned bool `json:"unpinned,omitempty"`
}

func (e Entry) validate() error {
	verdicts := 0
	for _, verdict := range []string{e.Field, e.Provider, e.Declined} {
		if verdict != "" {
			verdicts++
		}
	}
	if verdicts != 1 {
		return errors.New("must have exactly one of field, provider and declined")
	}
	if e.Note != "" && e.Field == "" {
		return errors.New("note belongs beside field")
	}
	return nil
}

// Table holds the entries by kind and path.
type Table map[string]map[string]Entry

// Load reads the table below a repository's root.
func Load(root string) (Table, error) {
	data, err := os.ReadFile(filepath.Join(root, File))
	if err != nil {
		return nil, fmt.Errorf("read the table of fields: %w", err)
	}
	table := Table{}
	if err := yaml.UnmarshalStrict(data, &table); err != nil {
		return nil, fmt.Errorf("read %s: %w", File, err)
	}
	for kind, entries := range table {
		if !slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Name == kind }) {
			return nil, fmt.Errorf("%s: unknown kind %s", File, kind)
		}
		for path, entry := range entries {
			if err := entry.validate(); err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", File, kind, path, err)
			}
		}
	}
	return table, nil
}

// Paths are the paths of a kind's entries, sorted.
func (t Table) Paths(kind string) []string { return slices.Sorted(maps.Keys(t[kind])) }

// Unaccounted returns the fields of a kind's spec that no entry covers.
func (t Table) Unaccounted(kind string, schema *apiextensionsv1.JSONSchemaProps) []string {
	var missing []string
	for _, leaf := range leaves(schema) {
		if t.covering(kind, leaf) == "" {
			missing = append(missing, leaf)
		}
	}
	return missing
}

// Stale says what is wrong with a kind's entries when the schema is that of the pinned modules: an entry that covers nothing, or one that
// is marked as unpinned and is there.
func (t Table) Stale(kind string, schema *apiextensionsv1.JSONSchemaProps) []string {
	used := map[string]bool{}
	for _, leaf := range leaves(schema) {
		used[t.covering(kind, leaf)] = true
	}
	var problems []string
	for _, path := range t.Paths(kind) {
		switch unpinned := t[kind][path].Unpinned; {
		case used[path] && unpinned:
			problems = append(problems, path+" is in the CRD: remove its mark unpinned")
		case !used[path] && !unpinned:
			problems = append(problems, path+" covers no field of the CRD: remove it, or mark it as unpinned")
		}
	}
	return problems
}

func leaves(schema *apiextensionsv1.JSONSchemaProps) []string {
	spec := schema.Properties["spec"]
	return crdschema.Leaves(&spec, "spec")
}

// covering is the path of the entry that says what becomes of a field: the longest one.
func (t Table) covering(kind, leaf string) string {
	for path := leaf; path != ""; path = path[:max(strings.LastIndexAny(path, ".[{"), 0)] {
		if _, ok := t[kind][path]; ok {
			return path
		}
	}
	return ""
}

// Dangling returns the fields of ours that the table names and our CustomResourceDefinitions below root do not have.
func (t Table) Dangling(root string) ([]string, error) {
	specs := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, folder := range ourCRDs {
		crds, err := crdschema.ReadFolder(filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		for _, crd := range crds {
			specs[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	var dangling []string
	for _, kind := range Kinds {
		for _, path := range t.Paths(kind.Name) {
			field := t[kind.Name][path].Field
			ours, ourPath, _ := strings.Cut(field, ".")
			if field != "" && (specs[ours] == nil || crdschema.Lookup(specs[ours], ourPath) == nil) {
				dangling = append(dangling, fmt.Sprintf("%s %s: there is no field %s", kind.Name, path, field))
			}
		}
	}
	return dangling, nil
}
