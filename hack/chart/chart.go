// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	versionutil "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// name is that of the chart and of its folder.
const name = "openshift-assisted"

// files are those of the chart that do not come from the objects. The delimiters of the templates are [[ and ]].
//
//go:embed files
var files embed.FS

// chart is what one run writes, and from what.
type chart struct {
	root      string // of the repository
	release   string // folder with the components files
	version   string // of the release
	out       string
	kustomize string
}

// write replaces the folder of the chart. Nothing is removed when the chart cannot be made.
func (c chart) write(ctx context.Context) error {
	contents, err := c.contents(ctx)
	if err != nil {
		return err
	}
	return replace(filepath.Join(c.out, name), contents)
}

// replace writes the files of a chart into a folder, in the place of an earlier chart.
func replace(folder string, contents map[string][]byte) error {
	if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); errors.Is(err, fs.ErrNotExist) {
		// No other folder with files is removed.
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("folder %s is no chart: choose another one, it would be removed: %w", folder, err)
		}
	} else if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove the earlier chart: %w", err)
	}
	for _, file := range slices.Sorted(maps.Keys(contents)) {
		target := filepath.Join(folder, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("make the folder of the chart: %w", err)
		}
		if err := os.WriteFile(target, contents[file], 0o644); err != nil {
			return fmt.Errorf("write a file of the chart: %w", err)
		}
	}
	return nil
}

// contents returns the chart's files by their slash-separated path in its folder.
func (c chart) contents(ctx context.Context) (map[string][]byte, error) {
	version, err := versionutil.ParseSemantic(c.version)
	if err != nil || !strings.HasPrefix(c.version, "v") {
		return nil, fmt.Errorf("version %q is not a semantic version with a leading v, such as v0.1.0", c.version)
	}
	contents := map[string][]byte{}
	facts := map[string]any{"Name": name, "Version": version.String(), "AppVersion": c.version}
	for _, p := range providers {
		defaults, templates, err := c.provider(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("make the templates of %s: %w", p.folder, err)
		}
		facts[p.key] = defaults
		maps.Copy(contents, templates)
	}
	return contents, addFiles(contents, facts)
}

// addFiles adds the embedded files.
func addFiles(contents map[string][]byte, facts map[string]any) error {
	return fs.WalkDir(files, "files", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		parsed, err := template.New(file).Delims("[[", "]]").Option("missingkey=error").Funcs(template.FuncMap{"yaml": inline}).
			Parse(string(data))
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, facts); err != nil {
			return fmt.Errorf("fill in %s: %w", file, err)
		}
		contents[strings.TrimPrefix(file, "files/")] = out.Bytes()
		return nil
	})
}

// provider returns the values that one provider has by default, and its templates.
func (c chart) provider(ctx context.Context, p provider) (defaults, map[string][]byte, error) {
	base, err := os.ReadFile(filepath.Join(c.release, p.components))
	if err != nil {
		return defaults{}, nil, fmt.Errorf("read the release: %w", err)
	}
	objects, err := parse(base)
	if err != nil {
		return defaults{}, nil, err
	}
	d, err := defaultsOf(objects)
	if err != nil {
		return d, nil, err
	}
	others := make([]rendered, 0, len(variants))
	for _, v := range variants {
		data, err := c.build(ctx, v.kustomization(c.root, p))
		if err != nil {
			return d, nil, err
		}
		parsed, err := parse(data)
		if err != nil {
			return d, nil, err
		}
		others = append(others, rendered{v, parsed})
	}
	templates, err := p.templates(objects, others, d)
	return d, templates, err
}

// build returns what kustomize makes of a kustomization.
func (c chart) build(ctx context.Context, k kustomization) ([]byte, error) {
	dir, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a kustomization: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := k.write(dir); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, c.kustomize, "build", dir).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("render %s: %w", append(k.resources, k.components...), err)
	}
	return out, nil
}

// kustomization are folders that kustomize renders together.
type kustomization struct{ resources, components []string }

// write writes it as a folder of its own.
func (k kustomization) write(dir string) error {
	resources, err := relative(dir, k.resources)
	if err != nil {
		return err
	}
	components, err := relative(dir, k.components)
	if err != nil {
		return err
	}
	data, err := yaml.Marshal(map[string][]string{"resources": resources, "components": components})
	if err != nil {
		return fmt.Errorf("encode a kustomization: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), data, 0o600); err != nil {
		return fmt.Errorf("write a kustomization: %w", err)
	}
	return nil
}

// relative returns the paths of folders as they are seen from dir, since kustomize takes no absolute ones.
func relative(dir string, folders []string) ([]string, error) {
	paths := make([]string, 0, len(folders))
	for _, folder := range folders {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("find folder %s: %w", folder, err)
		}
		seen, err := filepath.Rel(dir, absolute)
		if err != nil {
			return nil, fmt.Errorf("find folder %s: %w", folder, err)
		}
		paths = append(paths, seen)
	}
	return paths, nil
}

// kustomization is what a variant of a provider is rendered from.
func (v variantFolder) kustomization(root string, p provider) kustomization {
	own := filepath.Join(root, "config", p.folder)
	base, folder := filepath.Join(own, "default"), filepath.Join(own, v.name)
	switch v.kind {
	case component:
		return kustomization{[]string{base}, []string{folder}}
	case shared:
		return kustomization{[]string{base}, []string{filepath.Join(root, "config", "components", v.name)}}
	case addition:
		return kustomization{resources: []string{base, folder}}
	default:
		return kustomization{resources: []string{folder}}
	}
}
