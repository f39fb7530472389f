// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

const (
	testRegistry = "registry.example/owner"
	testRevision = "0123456789abcdef0123456789abcdef01234567"
)

var (
	demo   = program{pkg: ".", image: "demo", title: "Demo", description: "A program that says hello"}
	native = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
)

// demoSettings are those of a small module with a program and the licence of this repository.
func demoSettings(t *testing.T) settings {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	licence, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	g.Expect(err).NotTo(HaveOccurred())
	for file, content := range map[string]string{
		"go.mod": "module example.com/demo\n\ngo 1.26.0\n", "LICENSE": string(licence),
		"main.go": "package main\n\nimport \"os\"\n\nvar greeting = \"nobody\"\n\n" +
			"func main() { _, _ = os.Stdout.WriteString(\"hello \" + greeting + \"\\n\") }\n",
	} {
		g.Expect(os.WriteFile(filepath.Join(root, file), []byte(content), 0o600)).To(Succeed())
	}
	return settings{
		root: root, out: filepath.Join(t.TempDir(), "images"), registry: testRegistry, version: "v1.2.3", revision: testRevision,
		linkFlags: "-X main.greeting=world", builder: localBuilder, created: time.Unix(1700000000, 0).UTC(), platforms: []v1.Platform{native},
	}
}

// made writes the image of the small program, and opens it.
func made(t *testing.T, s settings) (line string, layout written, image v1.Image) {
	t.Helper()
	g := NewWithT(t)
	progress := &bytes.Buffer{}
	g.Expect(s.write(t.Context(), []program{demo}, progress)).To(Succeed())
	layout, err := open(filepath.Join(s.out, demo.image), s.registry+"/"+demo.image)
	g.Expect(err).NotTo(HaveOccurred())
	index, err := layout.top.ImageIndex(layout.images.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Manifests).To(HaveLen(1))
	g.Expect(manifest.Manifests[0].Platform.String()).To(Equal(native.String()))
	image, err = index.Image(manifest.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	return progress.String(), layout, image
}

// unpacked are the files of an image, by their paths.
func unpacked(t *testing.T, image v1.Image) (files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	g := NewWithT(t)
	reader := mutate.Extract(image)
	defer func() { g.Expect(reader.Close()).To(Succeed()) }()
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for archive := tar.NewReader(reader); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(archive)
		g.Expect(err).NotTo(HaveOccurred())
		files[header.Name], headers[header.Name] = content, header
	}
}

func TestImageIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := demoSettings(t)
	first, _, _ := made(t, s)
	g.Expect(first).To(MatchRegexp(`^registry.example/owner/demo:v1.2.3@sha256:[0-9a-f]{64}\n$`))
	again, _, _ := made(t, s) // In the place of the first one.
	g.Expect(again).To(Equal(first))
	s.out, s.created = t.TempDir(), s.created.Add(time.Second)
	later, _, _ := made(t, s)
	g.Expect(later).NotTo(Equal(first), "the time of the sources is in the image")
}

// TestSettingsOfTheBuilder: what whoever makes images has written with "go env -w" is not in them, but says where modules come from.
func TestSettingsOfTheBuilder(t *testing.T) {
	g := NewWithT(t)
	s := demoSettings(t)
	file := filepath.Join(t.TempDir(), "env")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	t.Setenv("GOENV", file)
	for _, name := range []string{"GOFLAGS", "GOEXPERIMENT", "GOPROXY"} { // What is set is not looked for in the file.
		t.Setenv(name, "")
	}
	want, _, _ := made(t, s)
	const settings = "GOFLAGS=-gcflags=-N\nGOEXPERIMENT=nogreenteagc\nGOPROXY=https://proxy.example\n"
	g.Expect(os.WriteFile(file, []byte(settings), 0o600)).To(Succeed())
	got, _, _ := made(t, s)
	g.Expect(got).To(Equal(want))
	out, err := s.goCommand(t.Context(), native, "env", "GOFLAGS", "GOEXPERIMENT", "GOPROXY")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal("\n\nhttps://proxy.example\n"))
}

// TestTag: build metadata is no part of a tag with its plus, and the components name the same tag.
func TestTag(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "v1.2.3+build.1": "v1.2.3_build.1"} {
		g.Expect(settings{version: version}.tag()).To(Equal(want))
		g.Expect(settings{version: version, fips: "v1.0.0"}.tag()).To(Equal(want + "-fips"))
	}
}

func TestWhatIsInAnImage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := demoSettings(t)
	_, _, image := made(t, s)
	config, err := image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Config.User).To(Equal("65532:65532"))
	g.Expect(config.Config.Entrypoint).To(Equal([]string{"/manager"}))
	g.Expect(config.Config.Labels).To(And(
		HaveKeyWithValue("org.opencontainers.image.version", "v1.2.3"), HaveKeyWithValue("org.opencontainers.image.revision", testRevision),
		HaveKeyWithValue("org.opencontainers.image.licenses", "Apache-2.0"), HaveKeyWithValue("org.opencontainers.image.title", "Demo"),
	))
	files, headers := unpacked(t, image)
	g.Expect(files).To(And(HaveKey("LICENSE"), HaveKey("licenses/std/LICENSE"), HaveKey("manager")))
	g.Expect(string(files[rootsFile])).To(ContainSubstring("BEGIN CERTIFICATE"))
	for name, header := range headers {
		g.Expect(header.ModTime.UTC()).To(Equal(s.created), name)
		g.Expect([]int{header.Uid, header.Gid}).To(Equal([]int{0, 0}), name)
	}
	g.Expect(headers["manager"].Mode).To(BeEquivalentTo(0o755))
	file := filepath.Join(t.TempDir(), "manager")
	g.Expect(os.WriteFile(file, files["manager"], 0o700)).To(Succeed())
	out, err := exec.CommandContext(t.Context(), file).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal("hello world\n"))
}

// TestFilesBesideAManager: who builds the image in another way gets the files that it has here, and the Dockerfiles take them.
func TestFilesBesideAManager(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := demoSettings(t)
	_, _, image := made(t, s)
	want, _ := unpacked(t, image)
	manager := filepath.Join(t.TempDir(), managerFile)
	g.Expect(s.compile(t.Context(), demo, native, manager)).To(Succeed())
	s.out = t.TempDir()
	g.Expect(s.writeBeside(t.Context(), manager)).To(Succeed())
	files := os.DirFS(s.out)
	for name, content := range want {
		if name != managerFile && len(content) > 0 { // Folders are empty.
			g.Expect(fs.ReadFile(files, name)).To(Equal(content), name)
		}
	}
	for _, p := range programs {
		dockerfile, err := os.ReadFile("../../Dockerfile." + strings.TrimPrefix(p.pkg, "./"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(dockerfile)).To(And(
			ContainSubstring("./hack/images -beside=/manager -platforms=${TARGETOS}/${TARGETARCH} -out=/files\n"),
			ContainSubstring("FROM scratch\nCOPY --from=builder /files/ /\nCOPY --from=builder /manager /manager\nUSER "+user+"\n"),
		), p.pkg)
	}
}

// TestSourcesOfDockerfiles: what .dockerignore lets through has every package of both managers and of this program.
func TestSourcesOfDockerfiles(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	root := filepath.Join("..", "..")
	ignored, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	for line := range strings.Lines(string(ignored)) {
		name, kept := strings.CutPrefix(strings.TrimSpace(line), "!")
		from, to := filepath.Join(root, name), filepath.Join(folder, name)
		if !kept {
			continue
		}
		about, err := os.Stat(from)
		g.Expect(err).NotTo(HaveOccurred())
		if about.IsDir() {
			g.Expect(os.CopyFS(to, os.DirFS(from))).To(Succeed())
			continue
		}
		content, err := os.ReadFile(from)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(to, content, 0o600)).To(Succeed())
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./bootstrap", "./controlplane", "./hack/images")
	list.Dir, list.Env = folder, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	output, err := list.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
}

func TestPush(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := demoSettings(t)
	_, layout, image := made(t, s)
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	target := strings.TrimPrefix(server.URL, "http://") + "/owner"
	progress := &bytes.Buffer{}
	g.Expect(pushAll(t.Context(), s.out, target, progress)).To(Succeed())
	g.Expect(progress.String()).To(Equal(fmt.Sprintf("%s/demo:v1.2.3@%s\n", target, layout.images.Digest)))

	tag, err := name.NewTag(target + "/demo:v1.2.3")
	g.Expect(err).NotTo(HaveOccurred())
	index, err := remote.Index(tag)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(index.Digest()).To(Equal(layout.images.Digest))
	digest, err := image.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	referrers, err := remote.Referrers(tag.Digest(digest.String()))
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := referrers.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []string
	for _, referrer := range manifest.Manifests {
		artifact, err := remote.Image(tag.Digest(referrer.Digest.String()))
		g.Expect(err).NotTo(HaveOccurred())
		about, err := artifact.Manifest()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(about.Subject.Digest).To(Equal(digest))
		kinds = append(kinds, about.ArtifactType)
	}
	g.Expect(kinds).To(ConsistOf(spdxType, inTotoType))
	g.Expect(pushAll(t.Context(), t.TempDir(), target, progress)).To(MatchError(ContainSubstring("make images writes them")))
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	complete := []string{"-version=v1.2.3", "-revision=" + testRevision}
	for name, c := range map[string]struct {
		arguments []string
		epoch     string
		refused   string
	}{
		"all that is required":   {arguments: complete, epoch: "1700000000"},
		"no version":             {arguments: complete[1:], epoch: "1700000000", refused: `version ""`},
		"no revision":            {arguments: complete[:1], epoch: "1700000000", refused: `revision ""`},
		"no time":                {arguments: complete, refused: "SOURCE_DATE_EPOCH"},
		"a platform of one word": {arguments: append(complete, "-platforms=linux"), epoch: "1", refused: `platform "linux"`},
		"a registry to push to":  {arguments: []string{"-push=registry.example/owner"}},
		"a registry to sign in":  {arguments: []string{"-sign=registry.example/owner"}},
		"a built manager":        {arguments: []string{"-beside=manager"}},
		"a flag that is unknown": {arguments: []string{"-nothing"}, refused: "-nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			_, err := read(c.arguments, c.epoch)
			if c.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
		})
	}
}

func TestFolderOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := demoSettings(t)
	file := filepath.Join(s.out, demo.image, "letter.txt")
	g.Expect(os.MkdirAll(filepath.Dir(file), 0o750)).To(Succeed())
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	g.Expect(s.write(t.Context(), []program{demo}, io.Discard)).To(MatchError(ContainSubstring("files that are no image")))
	g.Expect(file).To(BeARegularFile())
}

func TestModuleWithoutALicence(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := demoSettings(t)
	g.Expect(os.Remove(filepath.Join(s.root, "LICENSE"))).To(Succeed())
	g.Expect(s.write(t.Context(), []program{demo}, io.Discard)).
		To(MatchError(ContainSubstring("example.com/demo has no licence that is known")))
}
