// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// kindAddToExistingCluster is the kind of a day-2 host in Agent.status.kind (ASSISTED 1.2).
const kindAddToExistingCluster = "AddToExistingClusterHost"

// kubeconfigKey is the key of a kubeconfig in a Secret of Cluster API (CONTRACT CP-52).
const kubeconfigKey = "value"

// chain is what belongs to one Machine.
type chain struct {
	machine *clusterv1.Machine
	host    *bmov1alpha1.BareMetalHost
	infra   string
	config  *bootstrapv1.OpenshiftAssistedConfig
	agent   *assisted.Agent
}

// VerifyHosts checks that every approved Agent of a Cluster is bound to the right host: that Machine, Metal3Machine,
// BareMetalHost and Agent refer to each other and that the Agent reports the BareMetalHost's MAC address. It returns the
// Agents' names by Machine.
func (w *World) VerifyHosts(ctx context.Context, cluster types.NamespacedName) (map[string]string, error) {
	chains, err := w.chains(ctx, cluster)
	if err != nil {
		return nil, err
	}
	agents := &assisted.AgentList{}
	if err := w.Client.List(ctx, agents, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the Agents: %w", err)
	}
	controlPlane, err := w.controlPlaneOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	var problems []error
	for _, c := range chains {
		names[c.machine.Name] = c.agent.Name
		problems = append(problems, c.verify(controlPlane.Name), w.verifyNetwork(ctx, c))
	}
	for i := range agents.Items {
		agent := &agents.Items[i]
		if agent.Spec.Approved && agent.BoundTo(cluster.Namespace, controlPlane.Name) && !containsValue(names, agent.Name) {
			problems = append(problems, fmt.Errorf("Agent %s is approved and belongs to no Machine of Cluster %s", agent.Name, cluster.Name))
		}
	}
	return names, errors.Join(problems...)
}

func containsValue(values map[string]string, value string) bool {
	for _, v := range values {
		if v == value {
			return true
		}
	}
	return false
}

// chains reads what belongs to each Machine, past the cache.
func (w *World) chains(ctx context.Context, cluster types.NamespacedName) ([]chain, error) {
	machines := &clusterv1.MachineList{}
	if err := w.Client.List(ctx, machines, ofCluster(cluster)...); err != nil {
		return nil, fmt.Errorf("cannot list the Machines of Cluster %s: %w", cluster, err)
	}
	chains := make([]chain, 0, len(machines.Items))
	for i := range machines.Items {
		c, err := w.chainOf(ctx, &machines.Items[i])
		if err != nil {
			return nil, err
		}
		chains = append(chains, c)
	}
	return chains, nil
}

func (w *World) chainOf(ctx context.Context, machine *clusterv1.Machine) (chain, error) {
	c := chain{machine: machine, infra: machine.Spec.InfrastructureRef.Name, host: &bmov1alpha1.BareMetalHost{}, agent: &assisted.Agent{}}
	infra := newMetal3Machine()
	if err := w.Client.Get(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: c.infra}, infra); err != nil {
		return c, fmt.Errorf("cannot read the Metal3Machine of Machine %s: %w", machine.Name, err)
	}
	key, ok := metal3.HostKey(infra)
	if !ok {
		return c, fmt.Errorf("Metal3Machine %s of Machine %s names no BareMetalHost", c.infra, machine.Name)
	}
	if err := w.Client.Get(ctx, key, c.host); err != nil {
		return c, fmt.Errorf("cannot read the BareMetalHost of Machine %s: %w", machine.Name, err)
	}
	if !metal3.Consumes(c.host, infra) {
		return c, fmt.Errorf("BareMetalHost %s is not consumed by Metal3Machine %s of Machine %s", key.Name, c.infra, machine.Name)
	}
	c.config = &bootstrapv1.OpenshiftAssistedConfig{}
	configKey := types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.Bootstrap.ConfigRef.Name}
	if err := w.Client.Get(ctx, configKey, c.config); err != nil {
		return c, fmt.Errorf("cannot read the config of Machine %s: %w", machine.Name, err)
	}
	agentKey := types.NamespacedName{Namespace: machine.Namespace, Name: c.config.Annotations[bootstrapv1.AgentAnnotation]}
	if err := w.Client.Get(ctx, agentKey, c.agent); err != nil {
		return c, fmt.Errorf("cannot read the Agent of Machine %s: %w", machine.Name, err)
	}
	return c, nil
}

func (c chain) verify(clusterDeployment string) error {
	role, fencing := assisted.RoleWorker, ""
	if util.IsControlPlaneMachine(c.machine) {
		role, fencing = assisted.RoleMaster, c.host.Annotations[bootstrapv1.FencingCredentialsAnnotation]
	} else if _, arbiter := c.machine.Labels[bootstrapv1.ArbiterLabel]; arbiter {
		role = assisted.RoleArbiter
	}
	claim := c.machine.Name + "/" + string(c.machine.UID)
	var problems []error
	for _, fact := range []struct {
		name      string
		got, want any
	}{
		{"claim", c.agent.Annotations[bootstrapv1.ClaimAnnotation], claim},
		{"approval", c.agent.Spec.Approved, true},
		{"cluster", c.agent.BoundTo(c.machine.Namespace, clusterDeployment), true},
		{"role", c.agent.Spec.Role, role},
		{"fencing credentials", c.agent.Spec.FencingCredentialsSecretRef, fencing},
		{"hostname", c.agent.Spec.Hostname, c.machine.Name},
		{"node label", c.agent.Spec.NodeLabels[metal3.NodeUIDLabel], string(c.host.UID)},
		{"serial number of its disk", c.diskSerial(), c.hintedSerial()},
		{"MAC address of BareMetalHost " + c.host.Name, slices.Contains(c.agent.MACAddresses(), metal3.BootMAC(c.host)), true},
	} {
		if fact.got != fact.want {
			problems = append(problems, fmt.Errorf("Agent %s of Machine %s: %s is %v, want %v",
				c.agent.Name, c.machine.Name, fact.name, fact.got, fact.want))
		}
	}
	return errors.Join(problems...)
}

// hintedSerial is the serial number that the host's root device hints ask for.
func (c chain) hintedSerial() string {
	if c.host.Spec.RootDeviceHints == nil {
		return ""
	}
	return c.host.Spec.RootDeviceHints.SerialNumber
}

// diskSerial is the serial number of the disk that the Agent was given.
func (c chain) diskSerial() string {
	for _, disk := range c.agent.Status.Inventory.Disks {
		if disk.ID == c.agent.Spec.InstallationDiskID {
			return disk.Serial
		}
	}
	return c.agent.Spec.InstallationDiskID
}

// WriteKubeconfig writes the kubeconfig of an installed cluster, as Cluster API publishes it, to a file.
func (w *World) WriteKubeconfig(ctx context.Context, cluster types.NamespacedName, path string) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}
	if err := w.Client.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("cannot read the kubeconfig of Cluster %s: %w", cluster, err)
	}
	if err := os.WriteFile(path, secret.Data[kubeconfigKey], 0o600); err != nil {
		return fmt.Errorf("cannot write the kubeconfig of Cluster %s: %w", cluster, err)
	}
	return nil
}

// VerifyNodes reads the Nodes of an installed cluster with kubectl and the published kubeconfig, and checks that every
// Machine has a Ready one with the right provider ID, and that there are no others.
func (w *World) VerifyNodes(ctx context.Context, cluster types.NamespacedName, kubeconfig string) error {
	out, err := w.Management.Run(ctx, "kubectl", nil, "--kubeconfig", kubeconfig, "get", "nodes", "-o", "json")
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := json.Unmarshal(out, nodes); err != nil {
		return fmt.Errorf("kubectl returned no Nodes: %w", err)
	}
	chains, err := w.chains(ctx, cluster)
	if err != nil {
		return err
	}
	var problems []error
	if len(nodes.Items) != len(chains) {
		problems = append(problems, fmt.Errorf("the installed cluster has %d Nodes, want %d", len(nodes.Items), len(chains)))
	}
	for _, c := range chains {
		problems = append(problems, c.verifyNode(nodes.Items))
	}
	return errors.Join(problems...)
}

func (c chain) verifyNode(nodes []corev1.Node) error {
	name := c.machine.Status.NodeRef.Name
	index := slices.IndexFunc(nodes, func(node corev1.Node) bool { return node.Name == name })
	if index < 0 {
		return fmt.Errorf("Machine %s refers to Node %q, which does not exist", c.machine.Name, name)
	}
	want := fmt.Sprintf("metal3://%s/%s/%s", c.host.Namespace, c.host.Name, c.infra)
	if got := nodes[index].Spec.ProviderID; got != want || c.machine.Spec.ProviderID != want {
		return fmt.Errorf("Node %s has provider ID %q and Machine %s %q, want %q", name, got, c.machine.Name, c.machine.Spec.ProviderID, want)
	}
	for _, condition := range nodes[index].Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("Node %s is not Ready", name)
}

// VerifyDayTwo checks that the Agent took no part in the first installation and was added to the installed cluster.
func (w *World) VerifyDayTwo(ctx context.Context, cluster types.NamespacedName, agent string) error {
	controlPlane, err := w.controlPlaneOf(ctx, cluster)
	if err != nil {
		return err
	}
	install := &hiveext.AgentClusterInstall{}
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(controlPlane), install); err != nil {
		return fmt.Errorf("cannot read the AgentClusterInstall of Cluster %s: %w", cluster, err)
	}
	dayOne, closed := assisted.DayOneAgents(install)
	if !closed || slices.Contains(dayOne, agent) {
		return fmt.Errorf("Agent %s is to be day 2, but the first installation (closed: %t) has %s", agent, closed, strings.Join(dayOne, ", "))
	}
	return w.VerifyAdded(ctx, cluster, agent)
}

// VerifyAdded checks that the Agent was added to the installed cluster. Its host may have been part of the first installation
// for another Machine: a host has one Agent name for life.
func (w *World) VerifyAdded(ctx context.Context, cluster types.NamespacedName, agent string) error {
	out, err := w.Kubectl(ctx, "get", "agents.agent-install.openshift.io", agent, "-n", cluster.Namespace, "-o", "jsonpath={.status.kind}")
	if err != nil {
		return err
	}
	if kind := string(out); kind != kindAddToExistingCluster {
		return fmt.Errorf("Agent %s has kind %q, want %q", agent, kind, kindAddToExistingCluster)
	}
	return nil
}
