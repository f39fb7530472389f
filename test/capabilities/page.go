// SPDX-License-Identifier: Apache-2.0

// Package capabilities tries what docs/capabilities says: the manifest of every page is applied to a sandbox world, and what the page says
// that the Assisted Installer reads is compared with the objects that come of it, field by field.
package capabilities

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// page is one page of docs/capabilities.
type page struct {
	// name is the file's, without its extension.
	name string
	// manifest are the objects that a user applies.
	manifest []*unstructured.Unstructured
	// reads are the objects that the Assisted Installer reads then, each with those of its fields that the page is about.
	reads []*unstructured.Unstructured
}

var yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n")

// readPages returns the pages of a folder that have a manifest. A page has none, or two blocks of YAML: the manifest, and what is read.
func readPages(folder string) ([]page, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the pages of %s: %w", folder, err)
	}
	var pages []page
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a page: %w", err)
		}
		blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			continue
		}
		if len(blocks) != 2 {
			return nil, fmt.Errorf("%s has %d blocks of YAML, want the manifest and what the Assisted Installer reads", file, len(blocks))
		}
		p := page{name: strings.TrimSuffix(filepath.Base(file), ".md")}
		p.manifest, err = decode(blocks[0][1])
		reads, readsErr := decode(blocks[1][1])
		p.reads = reads
		if err := errors.Join(err, readsErr); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		pages = append(pages, p)
	}
	return pages, nil
}

func decode(text string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text))
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot decode its YAML: %w", err)
		}
		objects = append(objects, object)
	}
}

// replicas is how many control-plane hosts the page's control plane has, or the template's number.
func (p page) replicas(template int) int {
	for _, object := range p.manifest {
		if replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas"); object.GetKind() == kindControlPlane && found &&
			err == nil {
			return int(replicas)
		}
	}
	return template
}

// deployments is how many MachineDeployments of one Machine the page has.
func (p page) deployments() int {
	count := 0
	for _, object := range p.manifest {
		if object.GetKind() == kindMachineDeployment {
			count++
		}
	}
	return count
}

// hosts is how many BareMetalHosts the page has.
func (p page) hosts() int {
	count := 0
	for _, object := range p.manifest {
		if object.GetKind() == "BareMetalHost" {
			count++
		}
	}
	return count
}

// readsHosts tells whether the page says what the Assisted Installer reads of hosts. What the other pages say is there before a host boots.
func (p page) readsHosts() bool {
	return slices.ContainsFunc(p.reads, func(wanted *unstructured.Unstructured) bool {
		return slices.Contains([]string{"Agent", "NMStateConfig"}, wanted.GetKind())
	})
}

// bringsAddresses tells whether the page's cluster has virtual addresses: it has none where load balancing is left to the user.
func (p page) bringsAddresses() bool {
	for _, object := range p.manifest {
		if object.GetKind() == kindControlPlane {
			vips, _, _ := unstructured.NestedSlice(object.Object, "spec", "install", "apiVIPs")
			return len(vips) > 0
		}
	}
	return true
}

const (
	kindControlPlane   = "OpenshiftAssistedControlPlane"
	kindConfigTemplate = "OpenshiftAssistedConfigTemplate"
	kindCluster        = "Cluster"

	kindMachineDeployment = "MachineDeployment"
)

// references are the paths of what a page's object takes over from the cluster's own.
var references = map[string][][]string{
	kindControlPlane: {{"spec", "machineTemplate", "spec", "infrastructureRef"}},
	kindCluster:      {{"spec", "controlPlaneRef"}, {"spec", "infrastructureRef"}},
}

// overlay puts the page's objects into the manifests of a cluster: its control plane, the template of its workers' configs and its networks
// take the place of the cluster's own, and what else it has is added. All of it comes to live in the cluster's namespace.
func (p page) overlay(cluster []*unstructured.Unstructured, namespace string) ([]*unstructured.Unstructured, error) {
	objects := slices.Clone(cluster)
	for _, object := range p.manifest {
		if object.GetNamespace() != "" {
			object.SetNamespace(namespace)
		}
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return replaces(object, o) })
		if i < 0 {
			objects = append(objects, object)
			continue
		}
		replaced, err := merged(objects[i], object)
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", p.name, err)
		}
		objects[i] = replaced
	}
	return objects, nil
}

// replaces tells whether an object of a page takes the place of one of the cluster.
func replaces(object, of *unstructured.Unstructured) bool {
	if object.GetKind() != of.GetKind() {
		return false
	}
	switch object.GetKind() {
	case kindControlPlane, kindConfigTemplate, kindCluster:
		return true
	default:
		return object.GetName() == of.GetName()
	}
}

// merged is the page's object under the name of the cluster's, with the cluster's own references.
func merged(old, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result := object.DeepCopy()
	result.SetName(old.GetName())
	for _, path := range references[object.GetKind()] {
		value, _, err := unstructured.NestedMap(old.Object, path...)
		if err == nil {
			err = unstructured.SetNestedMap(result.Object, value, path...)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot keep %s of %s: %w", strings.Join(path, "."), old.GetKind(), err)
		}
	}
	return result, nil
}
