// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"io"
	"net/http"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config/v3_1"
)

// get downloads a file as a manager or a host does.
func (f *fixture) get(url string) (int, []byte) {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, url, nil)
	must(f.t, err)
	response, err := http.DefaultClient.Do(request)
	must(f.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(f.t, err)
	return response.StatusCode, data
}

// TestDiskImages boots a host from a disk image with the discovery ignition as user data.
func TestDiskImages(t *testing.T) {
	const diskImage = "http://images.example.com/coreos.qcow2"
	f := newFixture(t, Options{})
	f.infraEnv("ie", "")
	url := f.infraEnvNamed("ie").Status.BootArtifacts.DiscoveryIgnitionURL
	status, data := f.get(url)
	if status != http.StatusOK {
		t.Fatalf("the discovery ignition is answered with status %d", status)
	}
	if _, report, err := ignition.Parse(data); err != nil || report.IsFatal() {
		t.Fatalf("the discovery ignition is none: %v %s", err, report.String())
	}
	for change, want := range map[string]int{"api_key=": http.StatusUnauthorized, "discovery.ign": http.StatusNotFound} {
		if status, _ := f.get(strings.Replace(url, change, change+"x", 1)); status != want {
			t.Errorf("with another %q the status is %d, want %d", change, status, want)
		}
	}
	f.bareMetalHost("metal-0", "52:54:00:AA:BB:01")
	f.bareMetalHost("metal-1", "52:54:00:AA:BB:02")
	f.sim.backend.metal.WriteConfigDrive(f.key("metal-0"), data)
	f.sim.backend.metal.WriteConfigDrive(f.key("metal-1"), []byte(`{"ignition":{"version":"3.1.0"}}`))
	f.provision("metal-1", diskImage)
	f.provision("metal-0", diskImage)
	f.waitAgent(md5UUID("52:54:00:aa:bb:01"), hostKnownUnbound)
	if _, booted := f.sim.AgentOf(f.key("metal-1")); booted {
		t.Error("a host registers that knows no InfraEnv")
	}
}
