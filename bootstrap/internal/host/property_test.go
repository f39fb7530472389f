// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	ignitionconfig "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// randomConfigs is how many configs TestRendering makes up.
const randomConfigs = 1000

// TestRendering makes up configs that admission accepts, and renders each twice, from copies: ignition and arguments are the same, byte for
// byte, and ignition's own validator accepts them. A number that fails makes the same config again.
func TestRendering(t *testing.T) {
	for n := range uint64(randomConfigs) {
		g := NewWithT(t)
		config := randomConfig(g, rand.New(rand.NewPCG(n, 0)))
		g.Expect(validation.Config(config.Spec, field.NewPath("spec"))).To(BeEmpty(), "config %d", n)
		first, firstArgs, err := installation(config.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred(), "config %d", n)
		second, secondArgs, err := installation(config.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred(), "config %d", n)
		g.Expect([]string{second, secondArgs}).To(Equal([]string{first, firstArgs}), "config %d", n)
		_, report, err := ignitionconfig.Parse([]byte(first))
		g.Expect(err).NotTo(HaveOccurred(), "config %d: %s", n, report.String())
		g.Expect(report.IsFatal()).To(BeFalse(), "config %d: %s", n, report.String())
	}
}

func randomConfig(g *WithT, r *rand.Rand) *bootstrapv1.OpenshiftAssistedConfig {
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	installation := &config.Spec.Installation
	for i := range r.IntN(4) {
		installation.KernelArguments = append(installation.KernelArguments, fmt.Sprintf("argument%d=%d", i, r.IntN(100)))
	}
	if r.IntN(2) == 0 {
		installation.DeletedKernelArguments = []string{"quiet"}
	}
	if r.IntN(3) == 0 {
		return config
	}
	own := types.Config{Ignition: types.Ignition{Version: []string{"3.1.0", "3.2.0"}[r.IntN(2)]}}
	for i := range r.IntN(5) {
		own.Storage.Files = append(own.Storage.Files, types.File{
			Node:          types.Node{Path: fmt.Sprintf("/etc/demo/%d-%d", i, r.IntN(100))},
			FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o600), Contents: types.Resource{Source: ptr.To(fmt.Sprintf("data:,%d", r.IntN(1000)))}},
		})
	}
	for i := range r.IntN(3) {
		own.Systemd.Units = append(own.Systemd.Units, types.Unit{
			Name: fmt.Sprintf("demo-%d.service", i), Enabled: ptr.To(r.IntN(2) == 0), Contents: ptr.To("[Service]\nExecStart=/usr/bin/true\n"),
		})
	}
	data, err := json.Marshal(own)
	g.Expect(err).NotTo(HaveOccurred())
	installation.Ignition = string(data)
	return config
}
