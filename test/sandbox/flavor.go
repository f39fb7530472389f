// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

const (
	templateFolder = "templates"
	templatePrefix = "cluster-template"
	templateSuffix = ".yaml"

	// diskImage is what hosts boot in template userdata; nobody downloads it.
	diskImage         = "http://images.sandbox.example.com/coreos-openstack.qcow2"
	diskImageChecksum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

	// networkConfigLabel and networkConfig select the NMStateConfigs in template static-ip.
	networkConfigLabel = "network-config"
	networkConfig      = "6f1c0a52d0e84b1f"

	// releaseImage is what template disconnected installs; nobody pulls it.
	releaseImage = "registry.sandbox.example.com/ocp/release@sha256:8f3b1c0d5e7a9264b1f0c3d2e5a7968b8f3b1c0d5e7a9264b1f0c3d2e5a7968b"
)

// flavor is a template of this repository, by the name that users of clusterctl know it by.
type flavor struct {
	// topology is the shape that the template is made for.
	topology Topology
	// workers is how many a Run starts with.
	workers int
	// address is that of the API, unless Options.Address names another one.
	address string
	// managed: the Cluster has a topology, made from the ClusterClass.
	managed bool
	// variables are those that no other flavor has; prepare makes what only its clusters need, in addition to CreateInputs.
	variables func(w *World) map[string]string
	prepare   func(ctx context.Context, w *World, r ClusterRequest, hosts int) error
}

var flavors = map[string]flavor{
	"compact": {topology: Compact},
	"sno":     {topology: SNO},
	"arbiter": {topology: Arbiter},
	"fencing": {topology: Fencing, prepare: createFencingCredentials},
	// One worker, because all of them are replaced when a variable has changed.
	"topology":     {topology: HA, workers: 1, managed: true},
	"static-ip":    {topology: HA, workers: 1, variables: networkConfigVariables, prepare: createNetworkConfigs},
	"ipv6":         {topology: HA, workers: 1, address: "::1"},
	"userdata":     {topology: HA, workers: 1, variables: diskImageVariables},
	"disconnected": {topology: HA, workers: 1, variables: registryVariables},
}

// Flavors returns the names of the templates that ClusterRequest.Template may have, but for the default one.
func Flavors() []string { return slices.Sorted(maps.Keys(flavors)) }

// TopologyOf is the shape of cluster that a flavor is made for; HA for the default template and for others than flavors.
func TopologyOf(flavor string) Topology { return cmp.Or(flavors[flavor].topology, HA) }

// templateFile is the path of the template that a request asks for, by name or by path, or by its topology.
func (r ClusterRequest) templateFile() (string, error) {
	path := r.Template
	switch _, known := flavors[path]; {
	case path == "":
		path = shapes[r.Topology].template
	case known:
		path = filepath.Join(templateFolder, templatePrefix+"-"+path+templateSuffix)
	case !strings.HasSuffix(path, templateSuffix):
		return "", fmt.Errorf(
			"there is no template %q: choose one of %s, or the path of a %s file", path, strings.Join(Flavors(), ", "), templateSuffix,
		)
	}
	return repositoryFile(path)
}

// repositoryFile makes a path absolute that may be relative to the repository's root.
func repositoryFile(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	root, err := localcontrolplane.RepositoryRoot()
	return filepath.Join(root, path), err
}

// Managed says whether the cluster is made from the ClusterClass.
func (r ClusterRequest) Managed() bool { return flavors[r.Template].managed }

// variables are those of the template, in the form of an environment.
func (w *World) variables(r ClusterRequest) ([]string, error) {
	address, err := netip.ParseAddr(r.Address)
	if err != nil {
		return nil, fmt.Errorf("cluster %s needs the address of its API: %w", r.Name, err)
	}
	values := map[string]string{
		"OPENSHIFT_API_VIP": r.Address, "OPENSHIFT_INGRESS_VIP": address.Next().String(), "OPENSHIFT_API_ENDPOINT_HOST": r.Address,
		"OPENSHIFT_MACHINE_NETWORK_CIDR": machineNetworkOf(address), "OPENSHIFT_BASE_DOMAIN": "sandbox.example.com",
		"OPENSHIFT_VERSION": cmp.Or(r.Release.Version, OpenShiftVersion), "OPENSHIFT_PULL_SECRET_NAME": PullSecretName,
	}
	if own := flavors[r.Template].variables; own != nil {
		maps.Copy(values, own(w))
	}
	maps.Copy(values, r.Variables)
	variables := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, name+"="+values[name])
	}
	return variables, nil
}

// BootModes returns what Options.Boot may be: flavors that differ from the default template in how their hosts boot.
func BootModes() []string { return []string{"userdata"} }

// networkConfigVariables select the NMStateConfigs that createNetworkConfigs makes.
func networkConfigVariables(*World) map[string]string {
	return map[string]string{"OPENSHIFT_NETWORK_CONFIG": networkConfig}
}

// diskImageVariables name an image that hosts boot with user data.
func diskImageVariables(*World) map[string]string {
	return map[string]string{"OPENSHIFT_COREOS_IMAGE_URL": diskImage, "OPENSHIFT_COREOS_IMAGE_CHECKSUM": diskImageChecksum}
}

// registryVariables are those of a registry of one's own. The management cluster's authority stands for the registry's.
func registryVariables(w *World) map[string]string {
	return map[string]string{
		"OPENSHIFT_RELEASE_IMAGE":     releaseImage,
		"OPENSHIFT_RELEASE_MIRROR":    "registry.sandbox.example.com/openshift/release-images",
		"OPENSHIFT_COMPONENTS_MIRROR": "registry.sandbox.example.com/openshift/release",
		"OPENSHIFT_TRUST_BUNDLE":      strings.ReplaceAll(string(w.Management.Admin().CAData), "\n", `\n`),
	}
}

// createFencingCredentials makes a Secret for every host by which it can be powered off, and names it there.
func createFencingCredentials(ctx context.Context, w *World, r ClusterRequest, hosts int) error {
	for i := range hosts {
		name := fmt.Sprintf(hostName, i)
		host := &bmov1alpha1.BareMetalHost{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, host); err != nil {
			return fmt.Errorf("cannot read BareMetalHost %s: %w", name, err)
		}
		credentials := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name + "-fencing"},
			StringData: map[string]string{"address": host.Spec.BMC.Address, "username": "admin", "password": "admin"},
		}
		if err := w.Client.Create(ctx, credentials); err != nil {
			return fmt.Errorf("cannot create Secret %s: %w", credentials.Name, err)
		}
		err := w.Change(ctx, host, func() {
			metav1.SetMetaDataAnnotation(&host.ObjectMeta, bootstrapv1.FencingCredentialsAnnotation, credentials.Name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// createNetworkConfigs gives every host a static address.
func createNetworkConfigs(ctx context.Context, w *World, r ClusterRequest, hosts int) error {
	for i := range hosts {
		config := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "agent-install.openshift.io/v1beta1", "kind": "NMStateConfig",
			"spec": map[string]any{
				"interfaces": []any{map[string]any{"name": "eno1", "macAddress": bootMAC(r.Namespace, i)}},
				"config": map[string]any{"interfaces": []any{map[string]any{
					"name": "eno1", "type": "ethernet", "state": "up",
					"ipv4": map[string]any{
						"enabled": true, "dhcp": false,
						"address": []any{map[string]any{"ip": hostAddress(i, false), "prefix-length": int64(hostPrefix)}},
					},
				}}},
			},
		}}
		config.SetNamespace(r.Namespace)
		config.SetName(fmt.Sprintf(hostName, i))
		config.SetLabels(map[string]string{networkConfigLabel: networkConfig})
		if err := w.Client.Create(ctx, config); err != nil {
			return fmt.Errorf("cannot create NMStateConfig %s: %w", config.GetName(), err)
		}
	}
	return nil
}
