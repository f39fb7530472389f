// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math/rand"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capiversion "sigs.k8s.io/cluster-api/util/version"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func TestContractMachineNames(t *testing.T) {
	t.Run("CP-36 KCP-26 the same names are asked for until the cache shows them", testFreeMachineNames)
}

func TestContractVersions(t *testing.T) {
	t.Run("CP-10 versions are counted, what is no version is left out", testStatusVersions)
	t.Run("CP-10 core can read any list of versions", testVersionsAreReadable)
}

func TestContractDeletion(t *testing.T) {
	t.Run("CP-62 KCP-25 workers, Machines, then what the installation needed", testDeletion)
}

// testVersionsAreReadable checks lists of random versions by the rules with which core reads them: every entry is a semantic version, and
// none is older than the one before it, with build metadata compared.
func testVersionsAreReadable(t *testing.T) {
	g := NewWithT(t)
	versions := []string{
		"v1.32.9", "v1.33.4", "v1.33.10", "v1.33.4-rc.1", "v1.33.4+abc", "v1.33.4+f00", "v1.33.4+2", "v1.33.4+10", "v1.33.4+1.2", "1.33.4", "",
		"newest",
	}
	random := rand.New(rand.NewSource(1))
	for range 500 {
		var machines []*clusterv1.Machine
		for range random.Intn(8) {
			machines = append(machines, machineOf(versions[random.Intn(len(versions))], versions[random.Intn(len(versions))]))
		}
		list := plan.StatusVersions(machines)
		for i, entry := range list {
			version, err := semver.ParseTolerant(entry.Version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entry.Replicas).To(BeNumerically(">", 0))
			if i > 0 {
				before, err := semver.ParseTolerant(list[i-1].Version)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(capiversion.Compare(version, before, capiversion.WithBuildTags())).To(BeNumerically(">=", 0), "%v", list)
			}
		}
	}
}
