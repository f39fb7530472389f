// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// release gives the host back, in the order of M3-50: BMC Secret, host's image, wait for BMO, host's consumer, finalizer. Without
// a host, or when it has another consumer by now, the Metal3Machine goes at once (M3-53).
func (p *machinePass) release(ctx context.Context) error {
	if !controllerutil.ContainsFinalizer(p, machineFinalizer) {
		return nil
	}
	host, err := p.host(ctx)
	if err != nil {
		return err
	}
	if host != nil && p.consumes(host) {
		if err := p.releaseHost(ctx, host); err != nil {
			return err
		}
	}
	p.setCondition(conditionMetaData, metav1.ConditionFalse, "Deleting", "")
	p.setDeprecated(clusterv1.Condition{
		Type: deprecatedNode, Status: "False", Severity: clusterv1.ConditionSeverityInfo, Reason: "Deleting",
	})
	controllerutil.RemoveFinalizer(p, machineFinalizer)
	return nil
}

// releaseHost returns nil when the host is free of this Metal3Machine, and an error that says what it waits for before.
func (p *machinePass) releaseHost(ctx context.Context, host *bmov1alpha1.BareMetalHost) error {
	if err := p.labelCredentials(ctx, host, ""); err != nil {
		return err
	}
	before := host.DeepCopy()
	host.Spec.Image, host.Spec.CustomDeploy, host.Spec.UserData, host.Spec.Online = nil, nil, nil, false
	if !unchanged(before, host) {
		if err := p.patchHost(ctx, before, host); err != nil {
			return err
		}
		return p.deprovisioning("0s")
	}
	if !released(host) {
		return p.deprovisioning("30s")
	}
	if err := p.dropConsumer(ctx, host); err != nil {
		return err
	}
	return p.patchHost(ctx, before, host)
}

// released tells whether there is nothing on the host any more. Of one that was provisioned elsewhere only the power is Metal3's.
func released(host *bmov1alpha1.BareMetalHost) bool {
	switch host.Status.Provisioning.State {
	case bmov1alpha1.StateNone, bmov1alpha1.StateUnmanaged, bmov1alpha1.StateRegistering, bmov1alpha1.StateInspecting,
		bmov1alpha1.StateAvailable, bmov1alpha1.StateReady:
		return true
	case bmov1alpha1.StateExternallyProvisioned:
		return !host.Status.PoweredOn
	}
	return false
}

// deprovisioning reports normal progress as a failure, which is what CAPM3 does (M3-50).
func (p *machinePass) deprovisioning(after string) error {
	message := fmt.Sprintf("deprovisioning BareMetalHost, requeuing. Object will be requeued after %s", after)
	p.setDeprecated(clusterv1.Condition{
		Type: deprecatedNode, Status: "False", Severity: clusterv1.ConditionSeverityWarning, Reason: "DeletionFailed", Message: message,
	})
	err := &waitError{message: "failed to delete Metal3Machine: " + message, after: p.Durations.HostRetry}
	return p.failMetaData("DeletionFailed", err)
}

// dropConsumer takes the host's consumer away, or hands it to the Cluster when the template wants the host back (M3-55).
func (p *machinePass) dropConsumer(ctx context.Context, host *bmov1alpha1.BareMetalHost) error {
	delete(host.Labels, clusterv1.ClusterNameLabel)
	reuse, err := p.wantsNodeReuse(ctx)
	if err != nil {
		return err
	}
	if !reuse {
		host.Spec.ConsumerRef = nil
		return nil
	}
	setLabel(host, nodeReuseLabel, p.nodeReuseName())
	host.Spec.ConsumerRef = &corev1.ObjectReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: p.cluster.Name, Namespace: p.cluster.Namespace,
	}
	return nil
}

// nodeReuseName is the value of the node reuse label for this Metal3Machine, empty when it is in no MachineDeployment.
func (p *machinePass) nodeReuseName() string {
	if deployment := p.GetLabels()[clusterv1.MachineDeploymentNameLabel]; deployment != "" {
		return "md-" + deployment
	}
	return ""
}

func (p *machinePass) wantsNodeReuse(ctx context.Context) (bool, error) {
	if p.cluster == nil || p.nodeReuseName() == "" {
		return false, nil
	}
	key := client.ObjectKey{Namespace: p.GetNamespace(), Name: p.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]}
	template, err := p.load(ctx, kindMachineTemplate, key)
	if err != nil || template == nil {
		return false, err
	}
	reuse, _, err := unstructured.NestedBool(template.Object, "spec", "nodeReuse")
	if err != nil {
		return false, fmt.Errorf("read spec.nodeReuse of Metal3MachineTemplate %s: %w", key, err)
	}
	return reuse, nil
}
