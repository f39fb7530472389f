// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

const (
	noisyNamespace = "noisy"
	// hugeSecret is the size of a value in the noisy tenant's Secrets: a mebibyte would be the largest, and etcd has to hold all of them.
	hugeSecret = 300 << 10
	// noisyMAC is the boot MAC address of all hosts of the noisy tenant.
	noisyMAC = "52:54:ff:ff:ff:ff"
	// foreignGroup has kinds that nobody serves.
	foreignGroup = "infrastructure.example.com"
)

// noise is a tenant with so many broken objects of every kind.
type noise struct {
	size int
	// server is where its registry and its clusters' APIs never answer, as host and port.
	server string
	// now is when its objects were made.
	now string
}

func newNoise(size int, server string) noise {
	return noise{size: size, server: server, now: time.Now().UTC().Format(time.RFC3339)}
}

// objects are all that the tenant has, as they are stored.
func (n noise) objects() []localcontrolplane.StoredObject {
	all := []localcontrolplane.StoredObject{n.stored(map[string]any{"apiVersion": "v1", "kind": "Namespace"}, noisyNamespace)}
	for i := range n.size {
		all = append(all,
			n.stored(n.cluster(i), n.name(i)), n.stored(n.controlPlane(i), n.name(i)), n.stored(n.machine(i), n.name(i)),
			n.stored(n.config(i), n.name(i)), n.stored(n.host(), n.name(i)), n.stored(n.agent(), n.name(i)),
			n.stored(n.install(i), n.name(i)),
			n.stored(n.secret(map[string]any{
				"cluster.x-k8s.io/cluster-name": n.name(i),
			}, map[string]string{"value": n.kubeconfig(i)}), n.name(i)+"-kubeconfig"),
			n.stored(n.secret(map[string]any{
				assisted.HiveSecretTypeLabel: assisted.HiveSecretTypeKubeconfig,
			}, map[string]string{assisted.KubeconfigKey: strings.Repeat("x", hugeSecret)}), n.name(i)+"-admin-kubeconfig"),
		)
	}
	return all
}

// flapping are the objects whose annotations the tenant writes all the time.
func (n noise) flapping() []*unstructured.Unstructured {
	var targets []*unstructured.Unstructured
	for i := range n.size {
		for _, object := range []map[string]any{n.cluster(i), n.controlPlane(i), n.machine(i), n.config(i), n.host(), n.agent()} {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"]}}
			o.SetNamespace(noisyNamespace)
			o.SetName(n.name(i))
			targets = append(targets, o)
		}
	}
	return targets
}

func (n noise) name(i int) string { return fmt.Sprintf("broken-%05d", i) }

// uid is another one for each size: the garbage collector remembers owners that are gone.
func (n noise) uid(kind, name string) string { return uid(fmt.Sprint(n.size), kind, name) }

// stored completes the metadata of an object.
func (n noise) stored(object map[string]any, name string) localcontrolplane.StoredObject {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	kind, _ := object["kind"].(string)
	metadata["name"], metadata["uid"], metadata["generation"] = name, n.uid(kind, name), 1
	metadata["creationTimestamp"] = n.now
	object["metadata"] = metadata
	var out localcontrolplane.StoredObject
	for _, k := range kinds {
		if k.kind == kind {
			out = localcontrolplane.StoredObject{Group: k.group, Resource: k.resource, Name: name}
			if !k.clusterScoped {
				metadata["namespace"], out.Namespace = noisyNamespace, noisyNamespace
			}
		}
	}
	data, err := json.Marshal(object)
	if err != nil {
		panic(err) // It has maps, texts and numbers only.
	}
	out.Data = data
	return out
}

// owned are the metadata of what a broken object owns.
func (n noise) owned(i int, apiVersion, kind string) map[string]any {
	return map[string]any{
		"labels": map[string]any{"cluster.x-k8s.io/cluster-name": n.name(i)},
		"ownerReferences": []any{map[string]any{
			"apiVersion": apiVersion, "kind": kind, "name": n.name(i), "uid": n.uid(kind, n.name(i)), "controller": true,
		}},
	}
}

// cluster has infrastructure of a kind that nobody serves, and an API that never answers.
func (n noise) cluster(i int) map[string]any {
	host, port, _ := strings.Cut(n.server, ":")
	return map[string]any{
		"apiVersion": clusterGroup + "/v1beta2", "kind": "Cluster",
		"spec": map[string]any{
			"controlPlaneEndpoint": map[string]any{"host": host, "port": json.Number(port)},
			"controlPlaneRef": map[string]any{
				"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "OpenshiftAssistedControlPlane", "name": n.name(i),
			},
			"infrastructureRef": map[string]any{"apiGroup": foreignGroup, "kind": "BrokenCluster", "name": n.name(i)},
		},
		"status": map[string]any{"initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true}},
	}
}

// controlPlane asks for a release of a registry that never answers.
func (n noise) controlPlane(i int) map[string]any {
	template := map[string]any{"apiGroup": foreignGroup, "kind": "BrokenMachineTemplate", "name": n.name(i)}
	return map[string]any{
		"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "OpenshiftAssistedControlPlane",
		"metadata": n.owned(i, clusterGroup+"/v1beta2", "Cluster"),
		"spec": map[string]any{
			"distributionVersion": "4.20.0", "replicas": 3, "version": "v1.33.4",
			"release": map[string]any{"image": fmt.Sprintf("%s/release/%s:4.20.0", n.server, n.name(i))},
			"install": map[string]any{
				"baseDomain": "noisy.example.com", "platform": "None", "pullSecretRef": map[string]any{"name": "nobody-has-it"},
			},
			"machineTemplate": map[string]any{"spec": map[string]any{"infrastructureRef": template}},
		},
	}
}

// machine has infrastructure of a kind that nobody serves.
func (n noise) machine(i int) map[string]any {
	return map[string]any{
		"apiVersion": clusterGroup + "/v1beta2", "kind": "Machine", "metadata": n.owned(i, clusterGroup+"/v1beta2", "Cluster"),
		"spec": map[string]any{
			"clusterName": n.name(i), "version": "v1.33.4",
			"bootstrap": map[string]any{
				"configRef": map[string]any{"apiGroup": configGroup, "kind": "OpenshiftAssistedConfig", "name": n.name(i)},
			},
			"infrastructureRef": map[string]any{"apiGroup": foreignGroup, "kind": "BrokenMachine", "name": n.name(i)},
		},
	}
}

// config is of a Machine whose infrastructure nobody serves.
func (n noise) config(i int) map[string]any {
	return map[string]any{
		"apiVersion": configGroup + "/v1beta1", "kind": "OpenshiftAssistedConfig",
		"metadata": n.owned(i, clusterGroup+"/v1beta2", "Machine"), "spec": map[string]any{},
	}
}

// host has the boot MAC address of all others.
func (n noise) host() map[string]any {
	return map[string]any{
		"apiVersion": metal3Group + "/v1alpha1", "kind": "BareMetalHost",
		"spec":   map[string]any{"online": true, "bootMACAddress": noisyMAC},
		"status": map[string]any{"provisioning": map[string]any{"state": "provisioned"}},
	}
}

// agent has the MAC address of every host, and an InfraEnv that does not exist.
func (n noise) agent() map[string]any {
	return map[string]any{
		"apiVersion": agentGroup + "/v1beta1", "kind": "Agent",
		"metadata": map[string]any{"labels": map[string]any{assisted.InfraEnvLabel: "gone"}},
		"spec":     map[string]any{"approved": false, "role": ""},
		"status": map[string]any{
			"debugInfo": map[string]any{"state": assisted.AgentStateKnownUnbound},
			"inventory": map[string]any{"interfaces": []any{map[string]any{"name": "eno1", "macAddress": noisyMAC}}},
		},
	}
}

// install belongs to a control plane that has never made it.
func (n noise) install(i int) map[string]any {
	return map[string]any{
		"apiVersion": installGroup + "/v1beta1", "kind": "AgentClusterInstall",
		"metadata": map[string]any{"labels": map[string]any{"cluster.x-k8s.io/cluster-name": n.name(i)}},
		"spec": map[string]any{
			"clusterDeploymentRef":  map[string]any{"name": n.name(i)},
			"networking":            map[string]any{},
			"provisionRequirements": map[string]any{"controlPlaneAgents": 3},
		},
	}
}

// secret has values that are not encoded yet.
func (n noise) secret(labels map[string]any, values map[string]string) map[string]any {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": map[string]any{"labels": labels}, "data": data}
}

// kubeconfig leads every other cluster to the server that never answers, and is far too large for the others.
func (n noise) kubeconfig(i int) string {
	if i%2 == 1 {
		return strings.Repeat("x", hugeSecret)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://%s","insecure-skip-tls-verify":true}}],
"users":[{"name":"u","user":{"token":"t-%d"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`, n.server, i)
}
