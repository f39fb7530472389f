// SPDX-License-Identifier: Apache-2.0

// Package clusterctl checks this project's releases with the real clusterctl on a local management cluster, and has what other tests need
// to do so: a local repository of releases, and the commands that install from it.
package clusterctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/release"
)

// The names of the providers in a Repository: Provider is that of both of ours.
const (
	Provider = "openshift-assisted"
	Core     = "cluster-api"
	Metal3   = "metal3"
)

// Repository is a folder with releases that clusterctl reads without a network: this project's, Cluster API core's, and a stand-in for
// Metal3's that has no manager.
type Repository struct {
	// Dir is the folder, Config clusterctl's configuration in it.
	Dir, Config string

	core, metal3 string // versions
}

// Release is one of this project's.
type Release struct {
	// Version is its number.
	Version string
	// Tools build it.
	Tools *localcontrolplane.Tools
}

// NewRepository makes a Repository in an empty folder, with releases of this project as `make release` makes them. Its configuration is the
// one that the last of them brings, and the others' providers.
func NewRepository(ctx context.Context, tools *localcontrolplane.Tools, dir string, releases ...Release) (*Repository, error) {
	r := &Repository{Dir: dir, Config: filepath.Join(dir, "clusterctl.yaml")}
	for _, own := range releases {
		if err := r.addOwn(ctx, own); err != nil {
			return nil, err
		}
	}
	core, err := tools.CoreRelease(ctx)
	if err != nil {
		return nil, err
	}
	metal3, err := tools.Metal3Release(ctx)
	if err != nil {
		return nil, err
	}
	r.core, r.metal3 = core.Version, metal3.Version
	return r, errors.Join(
		r.add(Core, "core-components.yaml", Core, "CoreProvider", core),
		r.add("infrastructure-"+Metal3, "infrastructure-components.yaml", Metal3, "InfrastructureProvider", metal3),
		// Otherwise one failed try of cert-manager means that it is not installed.
		r.configure("cert-manager:\n  externallyProvisioned: \"true\"\n"),
	)
}

// addOwn merges the repository of a release of this project.
func (r *Repository) addOwn(ctx context.Context, own Release) (err error) {
	out, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for release %s: %w", own.Version, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	if err := release.Build(ctx, own.Tools, own.Version, out); err != nil {
		return err
	}
	if err := os.RemoveAll(r.Config); err != nil {
		return fmt.Errorf("cannot replace the configuration of an earlier release: %w", err)
	}
	if err := os.CopyFS(r.Dir, os.DirFS(filepath.Join(out, "repository"))); err != nil {
		return fmt.Errorf("cannot copy release %s: %w", own.Version, err)
	}
	return nil
}

// add adds the release of another project.
func (r *Repository) add(label, file, name, kind string, release *localcontrolplane.Release) error {
	folder := filepath.Join(r.Dir, label, release.Version)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of %s: %w", label, err)
	}
	return errors.Join(
		r.configure(fmt.Sprintf("- name: %s\n  type: %s\n  url: file://%s\n", name, kind, filepath.Join(folder, file))),
		os.WriteFile(filepath.Join(folder, file), release.Components, 0o644),
		os.WriteFile(filepath.Join(folder, "metadata.yaml"), release.Metadata, 0o644),
	)
}

// configure adds lines to clusterctl's configuration: providers, for as long as the list of them is its end, then other settings.
func (r *Repository) configure(lines string) error {
	config, err := os.OpenFile(r.Config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot add to clusterctl's configuration: %w", err)
	}
	_, err = config.WriteString(lines)
	return errors.Join(err, config.Close())
}

// Clusterctl runs clusterctl with the Repository's configuration against a cluster and returns its standard output. environment has
// variables of templates and components, in the form NAME=value.
func (r *Repository) Clusterctl(
	ctx context.Context, cp *localcontrolplane.ControlPlane, environment []string, args ...string,
) (string, error) {
	// clusterctl tries cert-manager in a namespace that it deletes without waiting. While that of the last time is still there, it takes it
	// for its new one, and waits in vain for what it makes in it.
	if _, err := cp.Run(ctx, "kubectl", nil, "wait", "--for=delete", "namespace/cert-manager-test", "--timeout=2m"); err != nil {
		return "", err
	}
	environment = append(slices.Clone(environment), "CLUSTERCTL_REPOSITORY_PATH="+r.Dir)
	out, err := cp.Run(ctx, "clusterctl", environment, append(args, "--config", r.Config)...)
	return string(out), err
}

// Init installs Cluster API core, both providers in the given version and Metal3, and starts core as it is installed: what
// sandbox.WorldOptions.Install asks for. The cluster needs the CRDs of cert-manager, so that clusterctl does not install it.
func (r *Repository) Init(ctx context.Context, cp *localcontrolplane.ControlPlane, version string) error {
	if _, err := r.Clusterctl(ctx, cp, nil, "init", "--core", r.CoreVersion(), "--bootstrap", Provider+":"+version,
		"--control-plane", Provider+":"+version, "--infrastructure", r.Metal3Version()); err != nil {
		return err
	}
	_, err := cp.RunInstalledCore(ctx)
	return err
}

// CoreVersion names Cluster API core's release as the flags of clusterctl take it: name:version.
func (r *Repository) CoreVersion() string { return Core + ":" + r.core }

// Metal3Version does the same for the stand-in for Metal3.
func (r *Repository) Metal3Version() string { return Metal3 + ":" + r.metal3 }
