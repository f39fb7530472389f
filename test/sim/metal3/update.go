// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
)

const (
	reasonMetaData    = "AssociateMetal3MachineMetaDataSuccess"
	reasonCreateError = "CreateError"
	reasonUpdateError = "UpdateError"

	// capm3PausedValue marks a host's pause as CAPM3's own: it never lifts a pause of the user's (M3-64).
	capm3PausedValue = "metal3.io/capm3"
)

// update keeps the host as CAPM3 wants it, and makes the Metal3Machine ready once the host is provisioned and its Node is known.
func (p *machinePass) update(ctx context.Context) error {
	host, err := p.host(ctx)
	if err != nil {
		return err
	}
	if host == nil {
		return p.failMetaData(reasonCreateError, &waitError{
			message: fmt.Sprintf("failed to update BareMetalHost: BareMetalHost not found for machine %s. %s", p.GetName(), requeued),
			after:   p.Durations.HostRetry,
		})
	}
	p.associated(reasonAssociated)
	before := host.DeepCopy()
	setAnnotation(host, blockMoveAnnotation, "")
	if err := p.consume(ctx, before, host, p.nested("status", "userData", "name")); err != nil {
		return err
	}
	if p.waitsForData() {
		return p.failMetaData(reasonCreateError, &waitError{
			message: "failed to update BareMetalHost: waiting for Metal3DataTemplate to be available. " + requeued,
			after:   p.Durations.HostRetry,
		})
	}
	if err := p.setAddresses(host); err != nil {
		return err
	}
	switch {
	case host.Status.Provisioning.State != bmov1alpha1.StateProvisioned:
		p.setCondition(conditionMetaData, metav1.ConditionTrue, reasonMetaData, "")
		return nil
	case util.IsControlPlaneMachine(p.machine) && !p.machine.Spec.Bootstrap.ConfigRef.IsDefined():
		return p.findNodeByHostname(ctx, host)
	}
	return p.findNode(ctx, host)
}

// host returns the BareMetalHost that the annotation names, nil when it is gone (M3-54) or none was chosen.
func (p *machinePass) host(ctx context.Context) (*bmov1alpha1.BareMetalHost, error) {
	_, name, found := strings.Cut(p.GetAnnotations()[hostAnnotation], "/")
	if !found {
		return nil, nil
	}
	host := &bmov1alpha1.BareMetalHost{}
	key := client.ObjectKey{Namespace: p.GetNamespace(), Name: name}
	if err := p.config.client.Get(ctx, key, host); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get BareMetalHost %s of Metal3Machine %s: %w", key, p.GetName(), err)
	}
	return host, nil
}

// setAddresses reports what inspection found, and never what the Node says (M3-12, M3-38).
func (p *machinePass) setAddresses(host *bmov1alpha1.BareMetalHost) error {
	hardware := host.Status.HardwareDetails
	if hardware == nil {
		return nil
	}
	addresses := []any{}
	add := func(kind clusterv1.MachineAddressType, address string) {
		if address != "" {
			addresses = append(addresses, map[string]any{"type": string(kind), "address": address})
		}
	}
	for i := range hardware.NIC {
		add(clusterv1.MachineInternalIP, hardware.NIC[i].IP)
	}
	add(clusterv1.MachineHostName, hardware.Hostname)
	add(clusterv1.MachineInternalDNS, hardware.Hostname)
	if len(addresses) == 0 {
		return nil
	}
	return p.set(addresses, "status", "addresses")
}

// pause stops the host as well, with a copy of its status for a move to another management cluster (M3-64). The host's own status
// holds the hardware, which the copy leaves out.
func (p *machinePass) pause(ctx context.Context) error {
	host, err := p.host(ctx)
	if err != nil {
		return err
	}
	if host != nil && !hasPausedAnnotation(p) {
		if err := p.pauseHost(ctx, host); err != nil {
			return err
		}
	}
	p.setCondition(conditionAssociate, metav1.ConditionFalse, reasonPaused, "")
	p.setCondition(conditionPaused, metav1.ConditionTrue, reasonPaused, "")
	p.setDeprecated(clusterv1.Condition{
		Type: deprecatedAssociate, Status: "False", Severity: clusterv1.ConditionSeverityInfo, Reason: "Metal3MachinePaused",
	})
	return nil
}

func (p *machinePass) pauseHost(ctx context.Context, host *bmov1alpha1.BareMetalHost) error {
	if _, paused := host.Annotations[bmov1alpha1.PausedAnnotation]; !paused {
		before := host.DeepCopy()
		status := host.Status.DeepCopy()
		status.HardwareDetails = nil
		data, err := json.Marshal(status)
		if err != nil {
			return fmt.Errorf("copy the status of BareMetalHost %s: %w", client.ObjectKeyFromObject(host), err)
		}
		setAnnotation(host, bmov1alpha1.PausedAnnotation, capm3PausedValue)
		setAnnotation(host, bmov1alpha1.StatusAnnotation, string(data))
		if err := p.patchHost(ctx, before, host); err != nil {
			return err
		}
	}
	return p.dropAnnotation(ctx, host, blockMoveAnnotation)
}

// resume lifts a pause of CAPM3's own. The copy of the status is left to BMO, which may need it (M3-64). It tells whether there was a
// pause.
func (p *machinePass) resume(ctx context.Context) (bool, error) {
	host, err := p.host(ctx)
	if err != nil || host == nil || host.Annotations[bmov1alpha1.PausedAnnotation] != capm3PausedValue {
		return false, err
	}
	return true, p.dropAnnotation(ctx, host, bmov1alpha1.PausedAnnotation)
}

func (p *machinePass) dropAnnotation(ctx context.Context, host *bmov1alpha1.BareMetalHost, key string) error {
	before := host.DeepCopy()
	delete(host.Annotations, key)
	return p.patchHost(ctx, before, host)
}

func unchanged(before, host *bmov1alpha1.BareMetalHost) bool {
	return equality.Semantic.DeepEqual(before.ObjectMeta, host.ObjectMeta) && equality.Semantic.DeepEqual(before.Spec, host.Spec)
}
