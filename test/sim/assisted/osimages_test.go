// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// TestOSImages: which image an InfraEnv gets when it is new, and later. The answers are those of the service's sources, and of the
// recordings where those have them (ASSISTED 8.7).
func TestOSImages(t *testing.T) {
	images := osImages{
		{Version: "4.20", Architecture: "x86_64"}, {Version: "4.9"}, {Version: "4.21.3"}, {Version: "4.21.10"},
		{Version: "4.22", Architecture: "arm64"},
	}
	missing := "Specified OSImageVersion is missing from AgentServiceConfig"
	known := &infraEnv{osImage: "4.20"}
	tests := map[string]struct {
		images               osImages
		wanted, architecture string
		env                  *infraEnv
		want, why            string
	}{
		"the newest one":                      {images: images, want: "4.21.10"},
		"the newest one of the architecture":  {images: images, architecture: "aarch64", want: "4.22"},
		"none of the architecture":            {images: images, architecture: "s390x", why: "No OS images are available"},
		"a minor version":                     {images: images, wanted: "4.20", want: "4.20"},
		"a minor version, for its newest":     {images: images, wanted: "4.21", want: "4.21.10"},
		"a version, for its minor one":        {images: images, wanted: "4.20.7", want: "4.20"},
		"a version":                           {images: images, wanted: "4.21.3", want: "4.21.3"},
		"a version of the other architecture": {images: images, wanted: "4.22", why: missing},
		"a version that it has not":           {images: images, wanted: "9.99", why: missing},
		"later, the same":                     {images: images, env: known, want: "4.20"},
		"later, another":                      {images: images, wanted: "4.9", env: known, want: "4.9"},
		"later, another that it has not": {
			images: images, wanted: "9.99", env: known,
			why: "No OS image for Openshift version 9.99 and architecture x86_64: The requested OS image",
		},
		"later, when it has that no more": {images: images[1:], env: known, why: "No OS image for Openshift version 4.20 and"},
		"later, when it has no such architecture": {
			images: images[4:], env: known, why: "The requested CPU architecture (x86_64) isn't specified in OS images list",
		},
		"a service with all images": {wanted: "4.99", want: "4.99"},
		"the newest one of all":     {want: defaultOSImage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := imageInputs{OSImageVersion: tt.wanted, Architecture: "x86_64"}
			if tt.architecture != "" {
				in.Architecture = tt.architecture
			}
			version, err := tt.images.choose(in, tt.env)
			g.Expect(version).To(Equal(tt.want))
			if tt.why == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.why)))
			g.Expect(isUserError(err)).To(BeTrue(), "it is not tried again")
		})
	}
}

// TestOSImageComesLater: an InfraEnv that was refused gets its image when the service has it, and one that had its image keeps the version.
func TestOSImageComesLater(t *testing.T) {
	f := newFixture(t, Options{OSImages: []OSImage{{Version: "4.20"}}})
	f.infraEnv("first", "")
	has := func(name, version string) func() bool {
		return func() bool {
			return strings.HasSuffix(f.infraEnvNamed(name).Status.ISODownloadURL, "/"+version+"/x86_64/minimal.iso")
		}
	}
	f.eventually("the first image", has("first", "4.20"))
	second := &aiv1.InfraEnv{ObjectMeta: f.meta("second")}
	second.Spec = f.infraEnvNamed("first").Spec
	second.Spec.OSImageVersion = "4.21"
	f.create(second)
	f.eventually("the second InfraEnv to be refused", func() bool { return f.imageReason("second") == "ImageCreationError" })
	must(t, f.sim.SetOSImages(f.ctx, OSImage{Version: "4.20"}, OSImage{Version: "4.21"}))
	f.eventually("the second image", has("second", "4.21"))
	if !has("first", "4.20")() {
		t.Errorf("the first InfraEnv has another image: %s", f.infraEnvNamed("first").Status.ISODownloadURL)
	}
}
