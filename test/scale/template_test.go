// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/workload"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// seedTemplate is the template of the recorded cluster, before any manager has seen it.
func seedTemplate(t *testing.T) *template {
	t.Helper()
	g := NewWithT(t)
	seed, err := readSeed(recorded, now)
	g.Expect(err).NotTo(HaveOccurred())
	own, err := workload.CertificateAuthority("own")
	g.Expect(err).NotTo(HaveOccurred())
	shared, err := workload.CertificateAuthority("shared")
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := "clusters:\n- cluster:\n    certificate-authority-data: " + base64.StdEncoding.EncodeToString(append(own, shared...)) + "\n"
	seed, err = withCredentials(seed, []byte(kubeconfig))
	g.Expect(err).NotTo(HaveOccurred())
	made, err := newTemplate(seed, own, now)
	g.Expect(err).NotTo(HaveOccurred())
	return made
}

func decode(t *testing.T, objects []localcontrolplane.StoredObject) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, object := range objects {
		o := &unstructured.Unstructured{}
		NewWithT(t).Expect(json.Unmarshal(object.Data, &o.Object)).To(Succeed())
		NewWithT(t).Expect([]string{o.GetNamespace(), o.GetName()}).To(Equal([]string{object.Namespace, object.Name}))
		out = append(out, o)
	}
	return out
}

// TestCopies: no copy shares anything with another one that tells objects apart, and all that they refer to is their own and comes before.
func TestCopies(t *testing.T) {
	g := NewWithT(t)
	made := seedTemplate(t)
	seen := map[string]bool{}
	for number := 1; number <= 3; number++ {
		c := copyOf{number: number, namespace: "site-" + strings.Repeat("x", number), workers: number - 1}
		objects, err := made.objects(c)
		g.Expect(err).NotTo(HaveOccurred())
		known, kinds, macs := map[string]bool{}, map[string]int{}, map[string]bool{}
		for _, o := range decode(t, objects) {
			g.Expect(seen).NotTo(HaveKey(string(o.GetUID())), "%s %s", o.GetKind(), o.GetName())
			seen[string(o.GetUID())], known[string(o.GetUID())] = true, true
			kinds[o.GetKind()]++
			if o.GetKind() == "BareMetalHost" {
				macs[nested(o, "spec", "bootMACAddress")] = true
			}
			text, err := json.Marshal(o.Object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).NotTo(ContainSubstring(seedNamespace))
			if o.GetKind() == "InfraEnv" {
				continue // Its users come with the workers.
			}
			for _, owner := range o.GetOwnerReferences() {
				g.Expect(known).To(HaveKey(string(owner.UID)), "%s of %s %s", owner.Kind, o.GetKind(), o.GetName())
			}
		}
		infraEnv, err := find(decode(t, objects), "InfraEnv", func(*unstructured.Unstructured) bool { return true })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(infraEnv.GetOwnerReferences()).To(HaveLen(number), "the configs of the control plane and of the workers")
		for _, owner := range infraEnv.GetOwnerReferences() {
			g.Expect(known).To(HaveKey(string(owner.UID)))
		}
		g.Expect(kinds).To(And(HaveKeyWithValue("Machine", number), HaveKeyWithValue("BareMetalHost", number), HaveKeyWithValue("Agent", 1)))
		g.Expect(macs).To(HaveLen(number))
		again, err := made.objects(c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(HaveLen(len(objects)))
		g.Expect(again[0]).To(Equal(objects[0]))
	}
}

// TestOwnAuthority: each copy has a certificate of its own beside those of the API, in the order in which the manager writes them.
func TestOwnAuthority(t *testing.T) {
	g := NewWithT(t)
	made := seedTemplate(t)
	bundles := map[string]bool{}
	for number := range 2 {
		objects, err := made.objects(copyOf{number: number, namespace: ownMAC(number)})
		g.Expect(err).NotTo(HaveOccurred())
		secret, err := find(decode(t, objects), "Secret", func(o *unstructured.Unstructured) bool { return o.GetName() == installerKubeconfig })
		g.Expect(err).NotTo(HaveOccurred())
		kubeconfig, err := base64.StdEncoding.DecodeString(nested(secret, "data", kubeconfigKey))
		g.Expect(err).NotTo(HaveOccurred())
		match := trustedAuthorities.FindSubmatch(kubeconfig)
		g.Expect(match).To(HaveLen(2))
		bundle, err := base64.StdEncoding.DecodeString(string(match[1]))
		g.Expect(err).NotTo(HaveOccurred())
		bundles[string(bundle)] = true
		first, rest := pem.Decode(bundle)
		second, rest := pem.Decode(rest)
		g.Expect(rest).To(BeEmpty())
		g.Expect(string(first.Bytes) < string(second.Bytes)).To(BeTrue())
		g.Expect(string(bundle)).NotTo(ContainSubstring(string(made.authority)))
	}
	g.Expect(bundles).To(HaveLen(2))
}

// TestNewAgent: the Agent of a worker has the identity of the worker's host, the size of a real one, and nothing of the first host.
func TestNewAgent(t *testing.T) {
	g := NewWithT(t)
	made := seedTemplate(t)
	agent := &unstructured.Unstructured{}
	g.Expect(json.Unmarshal(made.agent, &agent.Object)).To(Succeed())
	g.Expect(enlarge(agent)).To(Succeed())
	var err error
	made.agent, err = json.Marshal(agent.Object)
	g.Expect(err).NotTo(HaveOccurred())

	c := copyOf{number: 1, namespace: "site", workers: 2}
	objects, err := made.objects(c)
	g.Expect(err).NotTo(HaveOccurred())
	registered, err := made.newAgent(c, 1)
	g.Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(registered.Object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(text)).To(BeNumerically("~", 20<<10, 5<<10))
	for _, foreign := range []string{made.first.mac, `"` + made.first.name + `"`, "claimed-by"} {
		g.Expect(string(text)).NotTo(ContainSubstring(foreign))
	}
	isHost := func(o *unstructured.Unstructured) bool { return o.GetName() == made.workerOf(c, 1).name }
	host, err := find(decode(t, objects), "BareMetalHost", isHost)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(ContainSubstring(nested(host, "spec", "bootMACAddress")))
	g.Expect(string(text)).To(ContainSubstring(nested(host, "status", "hardware", "systemVendor", "serialNumber")))
	other, err := made.newAgent(c, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.GetName()).NotTo(Equal(registered.GetName()))
}

func TestShifted(t *testing.T) {
	g := NewWithT(t)
	text := `{"a":"2026-11-25T12:54:50Z","b":"{\"expires\":\"2026-11-25T23:59:59.500000Z\"}","c":"2026-13-45T12:00:00Z"}`
	g.Expect(string(shifted([]byte(text), time.Hour))).To(Equal(
		`{"a":"2026-11-25T13:54:50Z","b":"{\"expires\":\"2026-11-26T00:59:59.5Z\"}","c":"2026-13-45T12:00:00Z"}`,
	))
}
