// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/validation"
	"github.com/capi-openshift/agent-providers/test/golden"
)

func TestInstallation(t *testing.T) {
	const own = `{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,demo"}}]}}`
	tests := map[string]struct {
		spec   bootstrapv1.InstallationSpec
		golden string
		args   string
	}{
		"nothing asked for": {bootstrapv1.InstallationSpec{}, "sentinel.json", ""},
		"ignition":          {bootstrapv1.InstallationSpec{Ignition: own}, "merged.json", ""},
		"the unit of the provider is masked": {bootstrapv1.InstallationSpec{
			Ignition: `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"cluster-api-bootstrap-success.service","enabled":false}]}}`,
		}, "disabled.json", ""},
		"kernel arguments": {bootstrapv1.InstallationSpec{
			KernelArguments: []string{"console=tty0", "console=ttyS0"}, DeletedKernelArguments: []string{"quiet"},
		}, "sentinel.json", `["--append-karg","console=tty0","--append-karg","console=ttyS0","--delete-karg","quiet"]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config := &bootstrapv1.OpenshiftAssistedConfig{Spec: bootstrapv1.OpenshiftAssistedConfigSpec{Installation: tt.spec}}
			ignition, args, err := installation(config)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(args).To(Equal(tt.args))
			_, err = validation.ParseIgnition(ignition)
			g.Expect(err).NotTo(HaveOccurred(), "the service has to read it")
			golden.Compare(t, tt.golden, ignition+"\n")
		})
	}
	_, _, err := installation(&bootstrapv1.OpenshiftAssistedConfig{Spec: bootstrapv1.OpenshiftAssistedConfigSpec{
		Installation: bootstrapv1.InstallationSpec{Ignition: "{}"},
	}})
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("spec.installation.ignition must have")))
}

// TestContractSentinel: every host that is bound gets the unit.
func TestContractSentinel(t *testing.T) {
	t.Run("BOOT-37 the installed host leaves a sentinel file when its kubelet runs", func(t *testing.T) {
		g := NewWithT(t)
		d := decide(discovered())
		g.Expect(d.bind).NotTo(BeNil())
		g.Expect(d.bind.ignition).
			To(And(ContainSubstring("/run/cluster-api/bootstrap-success.complete"), ContainSubstring("After=kubelet.service")))
	})
}

// TestInstallationIsDeterministic: what is asked for twice is written once (DESIGN D15).
func TestInstallationIsDeterministic(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 1000 {
		g := NewWithT(t)
		config := &bootstrapv1.OpenshiftAssistedConfig{Spec: bootstrapv1.OpenshiftAssistedConfigSpec{Installation: randomInstallation(g, random)}}
		ignition, args, err := installation(config)
		g.Expect(err).NotTo(HaveOccurred())
		again, argsAgain, err := installation(config.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]string{again, argsAgain}).To(Equal([]string{ignition, args}))
		_, err = validation.ParseIgnition(ignition)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

func randomInstallation(g *WithT, random *rand.Rand) bootstrapv1.InstallationSpec {
	own := types.Config{Ignition: types.Ignition{Version: []string{"3.1.0", "3.2.0"}[random.Intn(2)]}}
	for i := range random.Intn(4) {
		own.Systemd.Units = append(own.Systemd.Units, types.Unit{Name: fmt.Sprintf("unit-%d.service", i), Enabled: ptr.To(random.Intn(2) == 0)})
		own.Storage.Files = append(own.Storage.Files, types.File{
			Node: types.Node{Path: fmt.Sprintf("/etc/file-%d", i)},
			FileEmbedded1: types.FileEmbedded1{
				Mode: ptr.To(random.Intn(0o777)), Contents: types.Resource{Source: ptr.To(fmt.Sprintf("data:,%d", random.Int()))},
			},
		})
	}
	spec := bootstrapv1.InstallationSpec{}
	if random.Intn(4) > 0 {
		data, err := json.Marshal(own)
		g.Expect(err).NotTo(HaveOccurred())
		spec.Ignition = string(data)
	}
	for range random.Intn(4) {
		spec.KernelArguments = append(spec.KernelArguments, fmt.Sprintf("a=%d", random.Int()))
		spec.DeletedKernelArguments = append(spec.DeletedKernelArguments, fmt.Sprintf("b=%d", random.Int()))
	}
	return spec
}
