// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	toolModules = "hack/tools"
	cacheName   = "openshift-agent-providers"
)

// tool is one third-party program: which package of which tool module it is, and how its version is stamped in.
type tool struct {
	name      string
	moduleDir string // folder below hack/tools with the go.mod that pins it
	module    string // module whose version is the program's
	pkg       string
	// versionPackage has the variables gitVersion, gitMajor and gitMinor; empty when the program has none. Clients such as
	// clusterctl refuse to work with an apiserver that reports no version.
	versionPackage string
	treeState      bool   // versionPackage has gitTreeState too
	tags           string // build tags
}

func kubernetesTool(name string) tool {
	return tool{
		name: name, moduleDir: "kubernetes", module: "k8s.io/kubernetes", pkg: "k8s.io/kubernetes/cmd/" + name,
		versionPackage: "k8s.io/component-base/version", treeState: true,
	}
}

var tools = []tool{
	{name: "etcd", moduleDir: "etcd", module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3"},
	kubernetesTool("kube-apiserver"),
	kubernetesTool("kube-controller-manager"),
	kubernetesTool("kubectl"),
	{
		name: "clusterctl", moduleDir: "capi", module: "sigs.k8s.io/cluster-api", pkg: "sigs.k8s.io/cluster-api/cmd/clusterctl",
		versionPackage: "sigs.k8s.io/cluster-api/version",
	},
	{
		name: "cluster-api-operator", moduleDir: "operator", module: "sigs.k8s.io/cluster-api-operator",
		pkg: modulePath + "/" + toolModules + "/operator",
	},
	{name: "helm", moduleDir: "helm", module: "helm.sh/helm/v4", pkg: "helm.sh/helm/v4/cmd/helm"},
	{name: "kustomize", moduleDir: "dev", module: "sigs.k8s.io/kustomize/kustomize/v5", pkg: "sigs.k8s.io/kustomize/kustomize/v5"},
	{
		name: "controller-gen", moduleDir: "dev", module: "sigs.k8s.io/controller-tools",
		pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen",
	},
	{name: "apidiff", moduleDir: "apidiff", module: "golang.org/x/exp", pkg: "golang.org/x/exp/cmd/apidiff"},
	{name: "cosign", moduleDir: "cosign", module: "github.com/sigstore/cosign/v3", pkg: "github.com/sigstore/cosign/v3/cmd/cosign"},
	{name: "govulncheck", moduleDir: "vuln", module: "golang.org/x/vuln", pkg: "golang.org/x/vuln/cmd/govulncheck"},
	{
		name: "golangci-lint", moduleDir: "lint", module: "github.com/golangci/golangci-lint/v2",
		pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint",
	},
	{
		name: "promtool", moduleDir: "prometheus", module: "github.com/prometheus/prometheus",
		pkg: "github.com/prometheus/prometheus/cmd/promtool", tags: "remove_all_sd", // nothing is discovered in clouds
	},
	{
		name: "promql", moduleDir: "prometheus", module: "github.com/prometheus/prometheus", pkg: modulePath + "/" + toolModules + "/prometheus",
	},
}

// Tools builds the third-party programs that tests and the Makefile use, from the modules below hack/tools, and keeps
// them in the user's cache folder (openshift-agent-providers/bin). A program is built once for each version of its
// module; two processes never build at the same time. It is safe for concurrent use.
type Tools struct {
	root     string
	cache    string
	progress io.Writer
}

// NewTools returns the tools of the repository that the working directory is in. While a program is built, which takes
// minutes for kube-apiserver, a line is written to progress; nil means no output.
func NewTools(progress io.Writer) (*Tools, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no cache folder for built tools, set HOME or XDG_CACHE_HOME: %w", err)
	}
	cache := filepath.Join(user, cacheName)
	if err := os.MkdirAll(filepath.Join(cache, "bin"), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the cache folder for built tools: %w", err)
	}
	if progress == nil {
		progress = io.Discard
	}
	return &Tools{root: root, cache: cache, progress: progress}, nil
}

// ToolNames returns the names that Path accepts, in a fixed order.
func ToolNames() []string {
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// Path returns the path of a third-party program (see ToolNames), and builds it first when the cache does not have it.
func (t *Tools) Path(ctx context.Context, name string) (string, error) {
	index := slices.IndexFunc(tools, func(known tool) bool { return known.name == name })
	if index < 0 {
		return "", fmt.Errorf("unknown tool %q: known are %s", name, strings.Join(ToolNames(), ", "))
	}
	spec := tools[index]
	moduleDir := filepath.Join(t.root, toolModules, spec.moduleDir)
	version, err := goCommand(ctx, moduleDir, "list", "-m", "-f", "{{.Version}}", spec.module)
	if err != nil {
		return "", err
	}
	flags := spec.linkerFlags(version)
	sources, err := spec.sources(moduleDir)
	if err != nil {
		return "", err
	}
	hash, err := moduleHash(moduleDir, append(sources, spec.settings(flags)...)...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(t.cache, "bin", fmt.Sprintf("%s-%s-%s", name, version, hash))
	err = t.once(ctx, path, func(draft string) error {
		return t.build(ctx, moduleDir, spec, flags, version, draft)
	})
	return path, err
}

// Build compiles a main package of the root module, such as "./bootstrap", to the file at path. It is always run: the go command's cache
// makes compiling quick, and linking, which it does not cache, is left out when the program kept from the last build is still what it
// would make.
func (t *Tools) Build(ctx context.Context, pkg, path string) error {
	return t.buildOwn(ctx, pkg, path, filepath.Base(pkg), nil)
}

// BuildWithRace is Build with the race detector, which needs a C compiler.
func (t *Tools) BuildWithRace(ctx context.Context, pkg, path string) error {
	return t.buildOwn(ctx, pkg, path, filepath.Base(pkg)+"-race", []string{"CGO_ENABLED=1"}, "-race")
}

func (t *Tools) buildOwn(ctx context.Context, pkg, path, name string, environment []string, flags ...string) error {
	dir := filepath.Join(t.cache, "own", fmt.Sprintf("%x", sha256.Sum256([]byte(t.root)))[:12])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the cache folder of %s: %w", pkg, err)
	}
	kept := filepath.Join(dir, name)
	unlock, err := lockFile(ctx, kept+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", kept}, flags...)
	if _, err := commandWith(ctx, t.root, environment, "go", append(args, pkg)...); err != nil {
		return err
	}
	program, err := os.ReadFile(kept)
	if err != nil {
		return fmt.Errorf("cannot read what was built of %s: %w", pkg, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, program, 0o755); err != nil {
		return fmt.Errorf("cannot copy %s: %w", path, err)
	}
	return nil
}

// Download fetches the modules of the root module, of every tool module and of EarlierCommit, so that later builds need no network. It
// needs the repository's whole history; see Earlier.
func (t *Tools) Download(ctx context.Context) error {
	earlier, err := t.Earlier(ctx)
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(t.root, toolModules, "*", "go.mod"))
	if err != nil {
		return fmt.Errorf("cannot list the tool modules: %w", err)
	}
	for _, mod := range append([]string{filepath.Join(t.root, "go.mod"), filepath.Join(earlier.root, "go.mod")}, found...) {
		fmt.Fprintf(t.progress, "downloading the modules of %s\n", mod)
		if _, err := goCommand(ctx, filepath.Dir(mod), "mod", "download"); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tools) build(ctx context.Context, dir string, spec tool, flags, version, path string) error {
	started, title := time.Now(), spec.name+" "+version
	fmt.Fprintf(t.progress, "building %s (first use only)\n", title)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags", spec.tags, "-ldflags", flags, "-o", path, spec.pkg}
	if _, err := goCommand(ctx, dir, args...); err != nil {
		return err
	}
	fmt.Fprintf(t.progress, "built %s in %s\n", title, time.Since(started).Round(time.Second))
	return nil
}

// once calls makeDraft for a cached file or folder that does not exist yet, and moves the draft to path only when it is
// complete, so that an interrupted build is never taken for a finished one.
func (t *Tools) once(ctx context.Context, path string, makeDraft func(draft string) error) error {
	if exists(path) {
		return nil
	}
	unlock, err := lockFile(ctx, filepath.Join(t.cache, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if exists(path) {
		return nil // another process was building it while this one waited for the lock
	}
	draft := path + ".draft"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("cannot remove an unfinished build: %w", err)
	}
	if err := makeDraft(draft); err != nil {
		return errors.Join(err, os.RemoveAll(draft))
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("cannot keep a finished build: %w", err)
	}
	return nil
}

func (s tool) linkerFlags(version string) string {
	flags := []string{"-s", "-w"}
	if s.versionPackage == "" {
		return strings.Join(flags, " ")
	}
	stamp := func(variable, value string) { flags = append(flags, "-X", s.versionPackage+"."+variable+"="+value) }
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	stamp("gitVersion", version)
	stamp("gitMajor", numbers[0])
	stamp("gitMinor", numbers[1])
	if s.treeState {
		stamp("gitTreeState", "clean")
	}
	return strings.Join(flags, " ")
}

// settings are what a build depends on besides its sources. Those of a tool without tags are the ones that its cached file is named after.
func (s tool) settings(flags string) []string {
	settings := []string{flags, runtime.GOOS, runtime.GOARCH}
	if s.tags != "" {
		settings = append(settings, s.tags)
	}
	return settings
}

// sources returns the contents of the Go files of a main package of our own in the tool's module; no version stands for them.
func (s tool) sources(moduleDir string) ([]string, error) {
	if !strings.HasPrefix(s.pkg, modulePath) {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(moduleDir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the sources of %s: %w", s.name, err)
	}
	sources := make([]string, 0, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the sources of %s: %w", s.name, err)
		}
		sources = append(sources, string(data))
	}
	return sources, nil
}

// moduleHash names what a build of the module in dir depends on: its pinned modules and the given settings.
func moduleHash(dir string, settings ...string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("cannot tell which versions are pinned: %w", err)
		}
		hash.Write(data)
	}
	for _, setting := range settings {
		fmt.Fprintf(hash, "\x00%s", setting)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))[:12], nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
