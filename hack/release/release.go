// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	versionutil "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

const (
	// providerName is the name of both providers (DESIGN D1).
	providerName = "openshift-assisted"
	// metadataFile and checksumsFile are the names that clusterctl and sha256sum users expect.
	metadataFile  = "metadata.yaml"
	checksumsFile = "SHA256SUMS"
	// policyFile is an admission policy that a user may apply.
	policyFile = "policy-keep-workers.yaml"
)

// provider is one of the two that are released.
type provider struct {
	kind   clusterctlv1.ProviderType
	folder string // its manager's package, and its kustomize folder below config/
}

var providers = []provider{
	{clusterctlv1.BootstrapProviderType, "bootstrap"},
	{clusterctlv1.ControlPlaneProviderType, "controlplane"},
}

// label is clusterctl's name for the provider, such as control-plane-openshift-assisted (CONTRACT CTL-1).
func (p provider) label() string { return clusterctlv1.ManifestLabel(providerName, p.kind) }

// name is the label without the project's name: bootstrap or control-plane. The provider's files are called after it.
func (p provider) name() string { return strings.TrimSuffix(p.label(), "-"+providerName) }

// componentsFile is the name that clusterctl looks for (CONTRACT CTL-4).
func (p provider) componentsFile() string { return p.name() + "-components.yaml" }

// release is what one run writes, and from what.
type release struct {
	root      string // of the repository
	out       string
	version   string
	kustomize string
	registry  string
	images    map[string]string // references that replace registry and version, by the provider's name
}

// write replaces the folder out by the files of the release. Nothing is removed when the files cannot be made.
func (r release) write(ctx context.Context) error {
	files, err := r.files(ctx)
	if err != nil {
		return err
	}
	if err := removeRelease(r.out); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(r.out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make the folder of the release: %w", err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("write a file of the release: %w", err)
		}
	}
	return nil
}

// removeRelease removes the folder of an earlier run, and no other folder with files.
func removeRelease(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for an earlier release: %w", err)
	}
	isRelease := slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == checksumsFile })
	if len(entries) > 0 && !isRelease {
		return fmt.Errorf("folder %s has files that are no release: choose another one, it would be removed", out)
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove the earlier release: %w", err)
	}
	return nil
}

// files returns everything that is written, by slash-separated path below out: the assets of a GitHub release (CONTRACT CTL-3) and,
// below repository/, the same for clusterctl without a network (CONTRACT CTL-1).
func (r release) files(ctx context.Context) (map[string][]byte, error) {
	metadata, err := r.metadata()
	if err != nil {
		return nil, err
	}
	files, err := r.templates()
	if err != nil {
		return nil, err
	}
	files[metadataFile] = metadata
	if files[policyFile], err = os.ReadFile(filepath.Join(r.root, "config", "policy", policyFile)); err != nil {
		return nil, fmt.Errorf("read the admission policy: %w", err)
	}
	for _, p := range providers {
		if err := r.addProvider(ctx, p, files); err != nil {
			return nil, err
		}
	}
	files[checksumsFile] = checksums(files)
	maps.Copy(files, r.repository(files))
	return files, nil
}

// addProvider adds the files of one provider; the metadata is among files already.
func (r release) addProvider(ctx context.Context, p provider, files map[string][]byte) error {
	components, err := r.components(ctx, p)
	if err != nil {
		return err
	}
	files[p.componentsFile()] = components
	if files[p.name()+"-configmap.yaml"], err = configMap(p, r.version, files[metadataFile], components); err != nil {
		return err
	}
	files[p.name()+"-sbom.cdx.json"], err = r.sbom(ctx, p)
	return err
}

// metadata returns metadata.yaml, when it says which contract the version speaks (CONTRACT CTL-5).
func (r release) metadata() ([]byte, error) {
	version, err := versionutil.ParseSemantic(r.version)
	if err != nil || !strings.HasPrefix(r.version, "v") {
		return nil, fmt.Errorf("version %q is not a semantic version with a leading v, such as v0.1.0", r.version)
	}
	data, err := os.ReadFile(filepath.Join(r.root, metadataFile))
	if err != nil {
		return nil, fmt.Errorf("read the release series: %w", err)
	}
	metadata := &clusterctlv1.Metadata{}
	if err := yaml.UnmarshalStrict(data, metadata); err != nil {
		return nil, fmt.Errorf("read the release series in %s: %w", metadataFile, err)
	}
	series := metadata.GetReleaseSeriesForVersion(version)
	if series == nil || series.Contract != clusterv1.GroupVersion.Version {
		return nil, fmt.Errorf("%s has no release series for %s with contract %s: add it, and keep the others",
			metadataFile, r.version, clusterv1.GroupVersion.Version)
	}
	return data, nil
}

// templates returns the cluster templates and ClusterClasses (CONTRACT CTL-30).
func (r release) templates() (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(r.root, "templates", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the templates: %w", err)
	}
	if len(paths) == 0 {
		return nil, errors.New("there are no templates/*.yaml: run this in the repository's root")
	}
	files := map[string][]byte{}
	for _, file := range paths {
		name := filepath.Base(file)
		if !strings.HasPrefix(name, "cluster-template") && !strings.HasPrefix(name, "clusterclass-") {
			return nil, fmt.Errorf(
				"templates/%s has a name that clusterctl does not know: call it cluster-template-*.yaml or clusterclass-*.yaml", name,
			)
		}
		if files[name], err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read a template: %w", err)
		}
	}
	return files, nil
}

// checksums returns what `sha256sum --check` reads.
func checksums(files map[string][]byte) []byte {
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = fmt.Appendf(out, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return out
}
