// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"errors"
	"fmt"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// nodeLabel holds the UID of a Node's BareMetalHost (M3-34).
	nodeLabel = "metal3.io/uuid"

	byLabelPrefix         = "failed to set ProviderID on Metal3Machine based on Node label: "
	byCloudProviderPrefix = "failed to set ProviderID on Metal3Machine based on Cloud Provider Node ProviderID: "
	byHostnamePrefix      = "unable to find Node by hostname, it may not be ready yet: "
)

// providerIDOf is the only provider ID that CAPM3 sets or accepts (M3-34).
func (p *machinePass) providerIDOf(host *bmov1alpha1.BareMetalHost) string {
	return fmt.Sprintf("metal3://%s/%s/%s", host.Namespace, host.Name, p.GetName())
}

// ready makes the Metal3Machine provisioned. A Node that is lost later changes nothing (M3-40).
func (p *machinePass) ready(providerID string) error {
	p.setCondition(conditionMetaData, metav1.ConditionTrue, reasonMetaData, "")
	return p.provisioned(providerID)
}

func (p *machinePass) provisioned(providerID string) error {
	return errors.Join(p.set(providerID, "spec", "providerID"), p.set(true, p.config.shape.provisioned...))
}

// findNode is the usual way: a Node must be found before anything is ready (M3-30 to M3-35).
func (p *machinePass) findNode(ctx context.Context, host *bmov1alpha1.BareMetalHost) error {
	providerID := p.providerIDOf(host)
	if p.nested("spec", "providerID") == providerID {
		return p.ready(providerID)
	}
	byCloudProvider, err := p.cloudProvider(ctx)
	if err != nil {
		return err
	}
	if byCloudProvider {
		if err := p.cloudProviderNode(ctx, providerID); err != nil {
			return p.failMetaData(reasonCreateError, prefixed(byCloudProviderPrefix, err))
		}
		return p.ready(providerID)
	}
	if err := p.labelledNode(ctx, host, providerID); err != nil {
		return p.failMetaData(reasonCreateError, prefixed(byLabelPrefix, err))
	}
	p.setCondition(conditionData, metav1.ConditionTrue, "SecretsSetExternally", "")
	p.setDeprecated(clusterv1.Condition{Type: conditionData, Status: "True"})
	return p.ready(providerID)
}

// cloudProvider reads the Metal3Cluster's setting; without a Metal3Cluster nobody promises a cloud provider.
func (p *machinePass) cloudProvider(ctx context.Context) (bool, error) {
	key := client.ObjectKey{Namespace: p.cluster.Namespace, Name: p.cluster.Spec.InfrastructureRef.Name}
	cluster, err := p.load(ctx, kindCluster, key)
	if err != nil || cluster == nil {
		return false, err
	}
	return p.config.shape.cloudProviderEnabled(cluster.Unstructured), nil
}

// labelledNode finds the Node by its label and gives it the provider ID if it has none (M3-33, M3-34, M3-37). The odd endings
// of the messages are CAPM3's.
func (p *machinePass) labelledNode(ctx context.Context, host *bmov1alpha1.BareMetalHost, providerID string) error {
	nodes, err := p.workloads.nodes(ctx, p.cluster)
	if err != nil {
		return fmt.Errorf("error creating a remote client: %w", err)
	}
	label := fmt.Sprintf("%s=%s", nodeLabel, host.UID)
	found, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return &waitError{
			message: fmt.Sprintf(
				"error retrieving node with label %s, requeuing: error retrieving nodes with label %s: %v. %s", label, label, err, requeued,
			),
			after: p.Durations.NodePoll,
		}
	}
	switch {
	case len(found.Items) == 0:
		return &waitError{
			message: fmt.Sprintf("requeuing, could not find node with label: %s. %s", label, requeued),
			after:   p.Durations.NodePoll,
		}
	case len(found.Items) > 1:
		return fmt.Errorf("found multiple target nodes with the same label: (%s): %%!w(<nil>)", label)
	}
	switch found.Items[0].Spec.ProviderID {
	case "":
		return nodes.setProviderID(ctx, found.Items[0].Name, providerID)
	case providerID:
		return nil
	}
	return errors.New("node using unsupported providerID format: %!w(<nil>)")
}

// cloudProviderNode demands a Node with the provider ID, whatever its labels (M3-35).
func (p *machinePass) cloudProviderNode(ctx context.Context, providerID string) error {
	nodes, err := p.workloads.nodes(ctx, p.cluster)
	if err != nil {
		return fmt.Errorf("error creating a remote client: %w", err)
	}
	all, err := nodes.List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range all.Items {
			if all.Items[i].Spec.ProviderID == providerID {
				return nil
			}
		}
	}
	return &waitError{message: "error retrieving node, requeuing. " + requeued, after: p.Durations.NodePoll}
}

// findNodeByHostname is the way of a control-plane Machine without a bootstrap config: it is ready without any Node, and the
// Node, if it ever comes, is found by the hostname that inspection saw (M3-36, and the recording of node reuse, in which a
// worker without a config goes the usual way).
func (p *machinePass) findNodeByHostname(ctx context.Context, host *bmov1alpha1.BareMetalHost) error {
	nodes, err := p.workloads.nodes(ctx, p.cluster)
	if err != nil {
		return p.failMetaData(reasonCreateError, fmt.Errorf("error creating a remote client: %w", err))
	}
	providerID := p.providerIDOf(host)
	if err := p.provisioned(providerID); err != nil {
		return err
	}
	hostname := ""
	if host.Status.HardwareDetails != nil {
		hostname = host.Status.HardwareDetails.Hostname
	}
	if hostname == "" {
		return p.noNodeYet("metal3Data Secret not ready")
	}
	all, err := nodes.List(ctx, metav1.ListOptions{})
	if err != nil || len(all.Items) == 0 {
		return p.noNodeYet("no Nodes found")
	}
	for i := range all.Items {
		node := &all.Items[i]
		if node.Labels[corev1.LabelHostname] != hostname {
			continue
		}
		if node.Spec.ProviderID == "" {
			if err := nodes.setProviderID(ctx, node.Name, providerID); err != nil {
				return p.failMetaData(reasonUpdateError, err)
			}
		}
		p.setCondition(conditionMetaData, metav1.ConditionTrue, reasonMetaData, "")
		return nil
	}
	return p.noNodeYet("no nodes matching hostnames: " + hostname)
}

func (p *machinePass) noNodeYet(why string) error {
	return p.failMetaData(reasonUpdateError, &waitError{
		message: byHostnamePrefix + why + ". " + requeued, after: p.Durations.NodePoll,
	})
}

// prefixed puts a text before the message of an error and leaves its kind alone.
func prefixed(prefix string, err error) error {
	var wait *waitError
	if errors.As(err, &wait) {
		return &waitError{message: prefix + wait.message, after: wait.after}
	}
	return fmt.Errorf("%s%w", prefix, err)
}
