// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// listed are images of an architecture.
func listed(architecture string, versions ...string) []assisted.OSImage {
	var images []assisted.OSImage
	for _, version := range versions {
		images = append(images, assisted.OSImage{OpenshiftVersion: version, CPUArchitecture: architecture})
	}
	return images
}

func TestFittingOSImage(t *testing.T) {
	both := append(listed("x86_64", "4.19", "4.20"), listed("arm64", "4.21")...)
	tests := map[string]struct {
		runs         string
		architecture bootstrapv1.CPUArchitecture
		images       []assisted.OSImage
		want, note   string
	}{
		"the release's own":                 {runs: "4.21.3", images: listed("x86_64", "4.20", "4.22", "4.21"), want: "4.21"},
		"the release's own by its patch":    {runs: "4.21.3", images: listed("x86_64", "4.20", "4.21.9"), want: "4.21"},
		"a candidate's own":                 {runs: "4.21.0-rc.1", images: listed("x86_64", "4.20", "4.21"), want: "4.21"},
		"10 is newer than 9":                {runs: "4.10.0", images: listed("x86_64", "4.9", "4.10"), want: "4.10"},
		"images without an architecture":    {runs: "4.21.3", images: listed("", "4.21"), want: "4.21"},
		"no release is known":               {images: listed("x86_64", "4.21")},
		"what is no release":                {runs: "rawhide", images: listed("x86_64", "4.21")},
		"no images are known":               {runs: "4.21.3"},
		"what is no version is passed over": {runs: "4.21.3", images: listed("x86_64", "latest", "4.21"), want: "4.21"},
		"the newest older one": {
			runs: "4.22.1", images: listed("x86_64", "4.19", "4.21", "4.20"), want: "4.21",
			note: "The cluster runs 4.22.1, and assisted-service has no OS image of 4.22 for x86_64: the host boots that of 4.21, and its first " +
				"boot from disk brings it to the cluster's; add one to the AgentServiceConfig",
		},
		"the newest older one of another major version": {
			runs: "5.0.1", images: listed("x86_64", "4.22", "4.9", "5.1"), want: "4.22",
			note: "The cluster runs 5.0.1, and assisted-service has no OS image of 5.0 for x86_64: the host boots that of 4.22, and its first " +
				"boot from disk brings it to the cluster's; add one to the AgentServiceConfig",
		},
		"newer ones only": {
			runs: "4.20.1", images: listed("x86_64", "4.21", "4.22"),
			note: "The cluster runs 4.20.1, and assisted-service has no OS image for x86_64 of that or an older release: the host boots its " +
				"default; add one to the AgentServiceConfig",
		},
		"the architecture by its other name": {runs: "4.21.3", architecture: "aarch64", images: both, want: "4.21"},
		"an older one of the architecture": {
			runs: "4.21.3", architecture: "x86_64", images: both, want: "4.20",
			note: "The cluster runs 4.21.3, and assisted-service has no OS image of 4.21 for x86_64: the host boots that of 4.20, and its first " +
				"boot from disk brings it to the cluster's; add one to the AgentServiceConfig",
		},
		"none of the architecture": {
			runs: "4.21.3", architecture: "s390x", images: both,
			note: "assisted-service has no OS image for s390x, so that it makes none for the host: add one to the AgentServiceConfig",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			s.config.Spec.CPUArchitecture, s.runs, s.osImages = tt.architecture, tt.runs, tt.images
			g.Expect(fittingOSImage(s)).To(Equal(tt.want))
			g.Expect(otherOSImage(s)).To(Equal(tt.note))
		})
	}
}

// TestHasOSImage: the URLs are those of the image service with each way of authentication (ASSISTED 1.1).
func TestHasOSImage(t *testing.T) {
	tests := map[string]struct {
		url   string
		going bool
		want  bool
	}{
		"local":               {url: "https://images.example.com/byapikey/eyJ.x/4.21/x86_64/minimal.iso", want: true},
		"none":                {url: "http://images.example.com:8080/byid/b1f7/4.21/x86_64/full.iso", want: true},
		"below a path":        {url: "https://example.com/images/bytoken/eyJ/4.21/x86_64/minimal.iso?a=/b/c/d", want: true},
		"by its patch":        {url: "https://images.example.com/byid/b1f7/4.21.4/x86_64/full.iso", want: true},
		"another release":     {url: "https://images.example.com/byid/b1f7/4.20/x86_64/full.iso"},
		"a form of its own":   {url: "https://images.example.com/full.iso"},
		"what is no URL":      {url: "https://images.example.com/%zz/4.21/x86_64/full.iso"},
		"no image yet":        {},
		"it is being deleted": {url: "https://images.example.com/byid/b1f7/4.21/x86_64/full.iso", going: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			infraEnv := &assisted.InfraEnv{Status: assisted.InfraEnvStatus{ISODownloadURL: tt.url}}
			if tt.going {
				infraEnv.DeletionTimestamp = ptr.To(metav1.Now())
			}
			NewWithT(t).Expect(hasOSImage(infraEnv, "4.21")).To(Equal(tt.want))
		})
	}
	NewWithT(t).Expect(hasOSImage(nil, "4.21")).To(BeFalse(), "there is no InfraEnv")
}

func TestChoosesOSImage(t *testing.T) {
	tests := map[string]struct {
		change func(*scope)
		want   bool
	}{
		"a new host of an installed cluster": {func(*scope) {}, true},
		"an InfraEnv is recorded":            {recorded, false},
		"the cluster is not installed": {func(s *scope) {
			s.cluster.Status.Initialization.ControlPlaneInitialized = nil
		}, false},
		"the user has chosen a version":    {func(s *scope) { s.config.Spec.Boot.OSImageVersion = "4.19" }, false},
		"a disk image of the user's":       {func(s *scope) { s.config.Spec.Boot.Mode = bootstrapv1.BootModeUserData }, false},
		"the config is going, all is gone": {func(s *scope) { s.config.DeletionTimestamp, s.machine = ptr.To(metav1.Now()), nil }, false},
		"the Machine is going":             {func(s *scope) { s.machine.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"a Machine that was moved with its data": {func(s *scope) {
			s.machine.Spec.Bootstrap.DataSecretName, s.infraMachine = ptr.To("m-0"), nil
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := prepared()
			s.config.Annotations = nil
			s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			tt.change(s)
			NewWithT(t).Expect(choosesOSImage(s)).To(Equal(tt.want))
		})
	}
}

// TestOSImageIsRecorded: the version goes with the record of the InfraEnv, and so does the one of a record that somebody has removed.
func TestOSImageIsRecorded(t *testing.T) {
	for name, tt := range map[string]struct{ recorded, chosen string }{
		"none": {"", ""}, "one": {"", "4.21"}, "another one": {"4.20", "4.21"}, "none any more": {"4.20", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			s.infraEnv, s.osImageVersion, s.config.Annotations = nil, tt.chosen, nil
			if tt.recorded != "" {
				s.config.Annotations = map[string]string{bootstrapv1.OSImageVersionAnnotation: tt.recorded}
			}
			setRecord(s.config, decide(s))
			g.Expect(s.config.Annotations).To(HaveKeyWithValue(bootstrapv1.InfraEnvAnnotation, "demo-x"))
			version, has := s.config.Annotations[bootstrapv1.OSImageVersionAnnotation]
			g.Expect(version).To(Equal(tt.chosen))
			g.Expect(has).To(Equal(tt.chosen != ""))
		})
	}
}
