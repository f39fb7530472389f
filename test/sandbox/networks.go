// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const (
	// staticAddresses are those that the network data of hosts gives them. Inspection has found others.
	staticAddresses = "127.10.254.%d"
	// networkDocument is the network data of a host. Which card it is about follows from the name that inspection found.
	networkDocument = `interfaces:
- name: eno1
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: %s
      prefix-length: 8
`
	configTemplateKind = "OpenshiftAssistedConfigTemplate"
)

// networkData is the name of the Secret with the network data of a host, and staticAddress what it says.
func networkData(host string) string { return host + "-network" }

func staticAddress(i int) string { return fmt.Sprintf(staticAddresses, firstHostByte+i) }

func newNetworkData(namespace string, i int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: networkData(fmt.Sprintf(hostName, i))},
		StringData: map[string]string{"nmstate": fmt.Sprintf(networkDocument, staticAddress(i))},
	}
}

// withHostNetworks makes every config template of manifests ask for the network data of its host, as a user does who edits the file.
func withHostNetworks(manifests []byte) ([]byte, error) {
	var out bytes.Buffer
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the manifests: %w", err)
		}
		if object.GetKind() == configTemplateKind {
			source := string(bootstrapv1.StaticNetworkingBareMetalHosts)
			if err := unstructured.SetNestedField(object.Object, source, "spec", "template", "spec", "staticNetworking", "source"); err != nil {
				return nil, fmt.Errorf("cannot change %s %s: %w", configTemplateKind, object.GetName(), err)
			}
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot write the manifests: %w", err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
}

// verifyNetwork checks that the host of a config that asks for it got the network that its BareMetalHost names: there is an NMStateConfig
// for its card, which the InfraEnv selects and owns, and the Agent reports the address.
func (w *World) verifyNetwork(ctx context.Context, c chain) error {
	if c.config.Spec.StaticNetworking.Source != bootstrapv1.StaticNetworkingBareMetalHosts {
		return nil
	}
	infraEnv := c.agent.Labels[assisted.InfraEnvLabel]
	list := &assisted.NMStateConfigList{}
	selector, err := w.networksOf(ctx, client.ObjectKey{Namespace: c.machine.Namespace, Name: infraEnv})
	if err != nil {
		return err
	}
	if err := w.Client.List(ctx, list, selector); err != nil { // In all namespaces, as assisted-service does.
		return fmt.Errorf("cannot list the NMStateConfigs of InfraEnv %s: %w", infraEnv, err)
	}
	at := slices.IndexFunc(list.Items, func(n assisted.NMStateConfig) bool {
		return n.Annotations[bootstrapv1.NMStateHostAnnotation] == c.host.Name
	})
	if at < 0 {
		return fmt.Errorf("BareMetalHost %s of Machine %s has no NMStateConfig for InfraEnv %s", c.host.Name, c.machine.Name, infraEnv)
	}
	var problems []error
	config := &list.Items[at]
	if !slices.ContainsFunc(
		config.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "InfraEnv" && owner.Name == infraEnv },
	) {
		problems = append(problems, fmt.Errorf("NMStateConfig %s does not go with InfraEnv %s", config.Name, infraEnv))
	}
	card := assisted.NMStateInterface{Name: "eno1", MACAddress: metal3.BootMAC(c.host)}
	if !slices.Equal(config.Spec.Interfaces, []assisted.NMStateInterface{card}) {
		problems = append(problems, fmt.Errorf("NMStateConfig %s is for %v, want %v", config.Name, config.Spec.Interfaces, card))
	}
	return errors.Join(append(problems, w.checkAddress(ctx, c.agent, c.host))...)
}

// networksOf is what an InfraEnv selects NMStateConfigs by.
func (w *World) networksOf(ctx context.Context, key client.ObjectKey) (client.MatchingLabelsSelector, error) {
	infraEnv := &assisted.InfraEnv{}
	if err := w.Client.Get(ctx, key, infraEnv); err != nil {
		return client.MatchingLabelsSelector{}, fmt.Errorf("cannot read InfraEnv %s: %w", key, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(infraEnv.Spec.NMStateConfigLabelSelector)
	if err != nil {
		return client.MatchingLabelsSelector{}, fmt.Errorf("cannot use the selector of InfraEnv %s: %w", key, err)
	}
	return client.MatchingLabelsSelector{Selector: selector}, nil
}

// checkAddress checks that an Agent reports the address that the network data of its host gives it.
func (w *World) checkAddress(ctx context.Context, agent *assisted.Agent, host *bmov1alpha1.BareMetalHost) error {
	var index int
	if _, err := fmt.Sscanf(host.Name, hostName, &index); err != nil {
		return fmt.Errorf("BareMetalHost %s has no number: %w", host.Name, err)
	}
	out, err := w.Kubectl(ctx, "get", "agents.agent-install.openshift.io", agent.Name, "-n", agent.Namespace,
		"-o", "jsonpath={.status.inventory.interfaces[*].ipV4Addresses[*]}")
	if err != nil {
		return err
	}
	want := staticAddress(index) + "/8"
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{want}) {
		return fmt.Errorf("Agent %s has addresses %v, and the network data of BareMetalHost %s says %s", agent.Name, got, host.Name, want)
	}
	return nil
}
