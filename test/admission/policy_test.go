// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

const machineDeployment = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: workers, namespace: default}
spec:
  clusterName: demo
  replicas: 2
  selector: {matchLabels: {pool: workers}}
  rollout: {strategy: {type: RollingUpdate}}
  template:
    metadata: {labels: {pool: workers}}
    spec:
      clusterName: demo
      version: v1.33.4
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: OpenshiftAssistedConfigTemplate, name: workers}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: workers}
`

// testPolicy applies the policy of the release that keeps workers from being installed anew (DESIGN D33).
func testPolicy(t *testing.T, cl client.Client) {
	g := NewWithT(t)
	root, err := localcontrolplane.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	data, err := os.ReadFile(filepath.Join(root, "config", "policy", "policy-keep-workers.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := utilyaml.ToUnstructured(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(2))
	for i := range objects {
		g.Expect(cl.Create(t.Context(), &objects[i])).To(Succeed())
	}
	const version, strategy, bootstrap = "spec.template.spec.version", "spec.rollout.strategy.type", "spec.template.spec.bootstrap"
	g.Expect(cl.Create(t.Context(), workers(t))).To(Succeed())
	// The API server acts on a policy some time after it was made.
	g.Eventually(func() error { return updateDeployment(t, cl, map[string]string{version: "v1.34.1"}) }).WithTimeout(time.Minute).
		Should(MatchError(And(
			ContainSubstring("version v1.34.1 would install every server of MachineDeployment workers anew"),
			ContainSubstring("spec.rollout.strategy.type is RollingUpdate: set it to OnDelete"),
		)))
	testStrategyOfFollowers(t, cl)
	for name, tt := range map[string]struct {
		change  map[string]string
		refused bool
	}{
		"a version and no strategy":     {map[string]string{version: "v1.34.1", "spec.rollout": ""}, true},
		"no version any more":           {map[string]string{version: ""}, true},
		"a version and OnDelete":        {map[string]string{version: "v1.34.1", strategy: "OnDelete"}, false},
		"a version and no servers":      {map[string]string{version: "v1.34.1", "spec.replicas": "0"}, false},
		"the number of servers":         {map[string]string{"spec.replicas": "3"}, false},
		"another bootstrap provider":    {map[string]string{version: "v1.34.1", bootstrap + ".configRef.kind": "Other"}, false},
		"bootstrap data from elsewhere": {map[string]string{version: "v1.34.1", bootstrap: "{dataSecretName: data}"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := updateDeployment(t, cl, tt.change)
			if tt.refused {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring("would install every server")))
			} else {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

// testStrategyOfFollowers changes the strategy of a MachineDeployment whose Machines follow a version, or do not.
func testStrategyOfFollowers(t *testing.T, cl client.Client) {
	const strategy, replicas, following = "spec.rollout.strategy.type", "spec.replicas", "still have to follow to version v1.33.4"
	const followed, halfway = "[{version: v1.33.4, replicas: 2}]", "[{version: v1.33.4, replicas: 1}, {version: v1.32.9, replicas: 1}]"
	const version, template = "* Version v1.32.9, v1.33.4 required", "* Metal3Machine is not up-to-date"
	for name, tt := range map[string]struct {
		versions, outdated, strategy, replicas string
		refused                                bool
	}{
		"Machines have to follow":              {versions: halfway, outdated: version, refused: true},
		"the status is not up to date":         {versions: halfway, refused: true},
		"the MachineSet has to follow":         {versions: followed, outdated: version, refused: true},
		"there are no servers":                 {versions: halfway, replicas: "0"},
		"the strategy stays":                   {versions: halfway, strategy: "OnDelete", replicas: "3"},
		"all have followed":                    {versions: followed},
		"nothing is known of it":               {},
		"the template alone outdates Machines": {versions: followed, outdated: template},
		"the template and the version outdate": {versions: halfway, outdated: version + "\n" + template, refused: true},
	} {
		t.Run("the strategy: "+name, func(t *testing.T) {
			g := NewWithT(t)
			stored := with(t, workers(t), strategy, "OnDelete")
			stored.SetName("followers")
			g.Expect(cl.Create(t.Context(), stored)).To(Succeed())
			t.Cleanup(func() { g.Expect(cl.Delete(context.Background(), stored)).To(Succeed()) })
			if tt.versions != "" {
				with(t, stored, "status.versions", tt.versions)
				with(t, stored, "status.conditions", fmt.Sprintf(
					"[{type: RollingOut, status: Unknown, reason: Test, lastTransitionTime: \"2026-01-01T00:00:00Z\", message: %q}]", tt.outdated))
				g.Expect(cl.Status().Update(t.Context(), stored)).To(Succeed())
			}
			with(t, stored, strategy, cmp.Or(tt.strategy, "RollingUpdate"))
			with(t, stored, replicas, cmp.Or(tt.replicas, "2"))
			err := cl.Update(t.Context(), stored, client.DryRunAll)
			if tt.refused {
				g.Expect(err).To(MatchError(And(ContainSubstring("type RollingUpdate would install servers of"), ContainSubstring(following))))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

// workers is a MachineDeployment whose servers a change of its version would install anew.
func workers(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(machineDeployment), &object.Object)).To(Succeed())
	return object
}

// updateDeployment tries a change of fields of the MachineDeployment.
func updateDeployment(t *testing.T, cl client.Client, change map[string]string) error {
	t.Helper()
	object := workers(t)
	NewWithT(t).Expect(cl.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	for path, value := range change {
		with(t, object, path, value)
	}
	return cl.Update(t.Context(), object, client.DryRunAll)
}
