// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/workload"
)

// bootMACPrefix is what the addresses of all hosts begin with; the other three bytes are the host's own.
const bootMACPrefix = "52:54:00:"

// host is by what a Machine's host is known in its objects.
type host struct{ machine, name, mac, agent string }

// template is a healthy cluster with a worker that waits for its Agent, as the managers have left them, for copies to be made of.
type template struct {
	made time.Time
	// cluster is all but the worker, and worker what comes with each further one.
	cluster, worker []localcontrolplane.StoredObject
	// uids are those of cluster and worker.
	clusterUIDs, workerUIDs []string
	// first is the host of the control plane, second that of the worker.
	first, second host
	// agent is that of the first host.
	agent []byte
	// infraEnv is through which all hosts register, and config the kind and UID by which the worker is among its users.
	infraEnv, workerConfigUID string
	// authority is the certificate that only the kubeconfigs of this cluster have.
	authority []byte
}

// newTemplate takes the objects of a cluster apart.
func newTemplate(objects []*unstructured.Unstructured, authority []byte, made time.Time) (*template, error) {
	t := &template{made: made, authority: authority}
	if err := t.findHosts(objects); err != nil {
		return nil, err
	}
	for _, o := range objects {
		data, err := stored(o)
		if err != nil {
			return nil, err
		}
		switch {
		case t.isWorkers(o.GetName()):
			t.worker, t.workerUIDs = append(t.worker, data), append(t.workerUIDs, string(o.GetUID()))
			if o.GetKind() == "OpenshiftAssistedConfig" {
				t.workerConfigUID = string(o.GetUID())
			}
		case o.GetName() == agentServiceConfig: // There is one for all clusters.
		default:
			t.cluster, t.clusterUIDs = append(t.cluster, data), append(t.clusterUIDs, string(o.GetUID()))
		}
	}
	return t, nil
}

// findHosts finds out which Machine has which host.
func (t *template) findHosts(objects []*unstructured.Unstructured) error {
	agent, err := find(objects, "Agent", func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return err
	}
	if t.agent, err = json.Marshal(agent.Object); err != nil {
		return fmt.Errorf("encode Agent %s: %w", agent.GetName(), err)
	}
	infraEnv, err := find(objects, "InfraEnv", func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return err
	}
	t.infraEnv = infraEnv.GetName()
	isFirst := func(o *unstructured.Unstructured) bool {
		_, controlPlane := o.GetLabels()["cluster.x-k8s.io/control-plane"]
		return controlPlane
	}
	for _, wanted := range []struct {
		host *host
		is   func(*unstructured.Unstructured) bool
	}{{&t.first, isFirst}, {&t.second, func(o *unstructured.Unstructured) bool { return !isFirst(o) }}} {
		machine, err := find(objects, "Machine", wanted.is)
		if err != nil {
			return err
		}
		metal, err := find(objects, "BareMetalHost", func(o *unstructured.Unstructured) bool {
			return nested(o, "spec", "consumerRef", "name") == nested(machine, "spec", "infrastructureRef", "name")
		})
		if err != nil {
			return err
		}
		*wanted.host = host{
			machine: machine.GetName(), name: metal.GetName(), agent: agent.GetName(),
			mac: strings.TrimPrefix(nested(metal, "spec", "bootMACAddress"), bootMACPrefix),
		}
	}
	return nil
}

// isWorkers reports whether an object of this name comes with the worker.
func (t *template) isWorkers(name string) bool {
	return slices.ContainsFunc([]string{t.second.machine, t.second.name}, func(owner string) bool {
		return name == owner || strings.HasPrefix(name, owner+"-")
	})
}

// copyOf is a cluster that is made like the template's: its number, which is that of no other in a hub, its namespace, and how many workers
// wait for their Agents.
type copyOf struct {
	number    int
	namespace string
	workers   int
}

// ownMAC is the host's own part of an address: hosts of the control planes of a hub and workers have other numbers.
func ownMAC(number int) string {
	return fmt.Sprintf("%02x:%02x:%02x", byte(number>>16), byte(number>>8), byte(number))
}

// maxWorkers is how many workers all clusters of a hub may have, and the numbers that they have before those of the control planes begin.
const maxWorkers = 1 << 23

// uid makes another UID out of one, always the same.
func uid(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// replacements are what distinguishes the cluster from the template's, as pairs of old and new texts.
func (t *template) replacements(c copyOf) []string {
	pairs := []string{seedNamespace, c.namespace, t.first.mac, ownMAC(maxWorkers + c.number), t.first.agent, uid(c.namespace, t.first.agent)}
	for _, original := range t.clusterUIDs {
		pairs = append(pairs, original, uid(c.namespace, original))
	}
	return pairs
}

// worker is the host of the i-th worker of a cluster.
func (t *template) workerOf(c copyOf, i int) host {
	return host{
		machine: fmt.Sprintf("%s-%05d", t.second.machine, i), name: fmt.Sprintf("host-w%05d", i),
		mac: ownMAC(i + 1), agent: uid(c.namespace, "agent", fmt.Sprint(i)),
	}
}

// workerReplacements are what distinguishes a worker from the template's, besides what distinguishes its cluster.
func (t *template) workerReplacements(c copyOf, i int) []string {
	own := t.workerOf(c, i)
	pairs := []string{t.second.machine, own.machine, t.second.name, own.name, t.second.mac, own.mac}
	for _, original := range t.workerUIDs {
		pairs = append(pairs, original, uid(c.namespace, original, fmt.Sprint(i)))
	}
	return pairs
}

// objects are those of a cluster that is made like the template's. What others own comes after its owner.
func (t *template) objects(c copyOf) ([]localcontrolplane.StoredObject, error) {
	pairs := t.replacements(c)
	authority, err := workload.CertificateAuthority("ingress-operator@" + c.namespace)
	if err != nil {
		return nil, err
	}
	var objects []localcontrolplane.StoredObject
	var errs []error
	for _, o := range copies(t.cluster, pairs) {
		switch o.Resource {
		case "secrets":
			o.Data, err = t.withAuthority(o.Data, authority)
		case "machinedeployments", "machinesets":
			o.Data, err = withReplicas(o.Data, c.workers)
		case "infraenvs":
			o.Data, err = t.withUsers(o.Data, c)
		default:
			err = nil
		}
		objects, errs = append(objects, o), append(errs, err)
	}
	for i := range c.workers {
		for _, o := range copies(t.worker, append(slices.Clone(pairs), t.workerReplacements(c, i)...)) {
			o.Data = shifted(o.Data, time.Since(t.made).Truncate(time.Second))
			objects = append(objects, o)
		}
	}
	return objects, errors.Join(errs...)
}

// copies replaces texts in the objects and in their names.
func copies(objects []localcontrolplane.StoredObject, pairs []string) []localcontrolplane.StoredObject {
	replacer := strings.NewReplacer(pairs...)
	out := make([]localcontrolplane.StoredObject, len(objects))
	for i, o := range objects {
		o.Namespace, o.Name, o.Data = replacer.Replace(o.Namespace), replacer.Replace(o.Name), []byte(replacer.Replace(string(o.Data)))
		out[i] = o
	}
	return out
}

// edited is an object after a change.
func edited(data []byte, change func(o *unstructured.Unstructured) error) ([]byte, error) {
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &o.Object); err != nil {
		return nil, fmt.Errorf("read an object of the seed: %w", err)
	}
	if err := change(o); err != nil {
		return nil, fmt.Errorf("change %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return json.Marshal(o.Object)
}

// withReplicas makes a group of workers as large as it is.
func withReplicas(data []byte, workers int) ([]byte, error) {
	return edited(data, func(o *unstructured.Unstructured) error {
		return errors.Join(
			unstructured.SetNestedField(o.Object, int64(workers), "spec", "replicas"),
			unstructured.SetNestedField(o.Object, int64(workers), "status", "replicas"),
			unstructured.SetNestedField(o.Object, int64(workers), "status", "upToDateReplicas"),
		)
	})
}

// withUsers makes the configs of the workers users of the InfraEnv.
func (t *template) withUsers(data []byte, c copyOf) ([]byte, error) {
	return edited(data, func(o *unstructured.Unstructured) error {
		users := slices.DeleteFunc(list(owners(o)), func(owner any) bool { return owner.(map[string]any)["uid"] == t.workerConfigUID })
		for i := range c.workers {
			users = append(users, map[string]any{
				"apiVersion": configGroup + "/v1beta1", "kind": "OpenshiftAssistedConfig", "name": t.workerOf(c, i).machine,
				"uid": uid(c.namespace, t.workerConfigUID, fmt.Sprint(i)),
			})
		}
		return unstructured.SetNestedSlice(o.Object, users, "metadata", "ownerReferences")
	})
}

func owners(o *unstructured.Unstructured) any {
	references, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences")
	return references
}

// trustedAuthorities is where a kubeconfig has the certificates that it trusts.
var trustedAuthorities = regexp.MustCompile(`certificate-authority-data: (\S+)`)

// withAuthority gives the kubeconfigs in a Secret the certificate of their cluster in the place of the template's. With it, client-go
// shares no connection between clusters.
func (t *template) withAuthority(data, authority []byte) ([]byte, error) {
	return edited(data, func(o *unstructured.Unstructured) error {
		values, _, err := unstructured.NestedStringMap(o.Object, "data")
		if err != nil || len(values) == 0 {
			return err
		}
		for key, value := range values {
			text, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("decode the value of %s: %w", key, err)
			}
			text = trustedAuthorities.ReplaceAllFunc(text, func(match []byte) []byte { return t.exchange(match, authority) })
			values[key] = base64.StdEncoding.EncodeToString(text)
		}
		return unstructured.SetNestedStringMap(o.Object, values, "data")
	})
}

// exchange puts a certificate in the place of the template's in one line of a kubeconfig, and sorts them as the manager does.
func (t *template) exchange(line, authority []byte) []byte {
	key, value, _ := strings.Cut(string(line), " ")
	bundle, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return line
	}
	replaced := bytes.Replace(bundle, t.authority, authority, 1)
	return []byte(key + " " + base64.StdEncoding.EncodeToString(sortedCertificates(replaced)))
}

// sortedCertificates sorts the certificates of a bundle by their bytes.
func sortedCertificates(bundle []byte) []byte {
	var blocks []*pem.Block
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, block)
	}
	slices.SortFunc(blocks, func(a, b *pem.Block) int { return bytes.Compare(a.Bytes, b.Bytes) })
	var out bytes.Buffer
	for _, block := range blocks {
		out.Write(pem.EncodeToMemory(block))
	}
	return out.Bytes()
}
