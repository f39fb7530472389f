// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"slices"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// provisionedID is what the fixture provisioner of the recordings reports; a real one is Ironic's node UUID.
	provisionedID = "temporary-fake-id"
	// unknownProfile is BMO's only hardware profile of today.
	unknownProfile = "unknown"
	// maxProvisioningRetries is the default of BMO's flag of that name (M3-62).
	maxProvisioningRetries = 5

	formatLiveISO = "live-iso"
)

// stateHandler takes a host one write further in its present state. It returns when to look again, zero for at the next event.
type stateHandler func(*hostPass, context.Context) (time.Duration, error)

// handlers is the life of a host (M3-74).
func handlers() map[bmov1alpha1.ProvisioningState]stateHandler {
	return map[bmov1alpha1.ProvisioningState]stateHandler{
		bmov1alpha1.StateNone:                    (*hostPass).discover,
		bmov1alpha1.StateUnmanaged:               (*hostPass).unmanaged,
		bmov1alpha1.StateRegistering:             (*hostPass).register,
		bmov1alpha1.StateInspecting:              (*hostPass).inspect,
		bmov1alpha1.StatePreparing:               (*hostPass).prepare,
		bmov1alpha1.StateAvailable:               (*hostPass).available,
		bmov1alpha1.StateProvisioning:            (*hostPass).provision,
		bmov1alpha1.StateProvisioned:             (*hostPass).provisioned,
		bmov1alpha1.StateExternallyProvisioned:   (*hostPass).externallyProvisioned,
		bmov1alpha1.StateDeprovisioning:          (*hostPass).deprovision,
		bmov1alpha1.StatePoweringOffBeforeDelete: (*hostPass).powerOffBeforeDelete,
		bmov1alpha1.StateDeleting:                (*hostPass).delete,
	}
}

// run does what comes before any state, and then the state's handler.
func (p *hostPass) run(ctx context.Context) (time.Duration, error) {
	if done, err := p.takeStatusAnnotation(); done || err != nil {
		return 0, err
	}
	if done, err := p.takeHardwareAnnotation(); done || err != nil {
		return 0, err
	}
	deleting := !p.host.DeletionTimestamp.IsZero()
	if !deleting && controllerutil.AddFinalizer(p.host, bmov1alpha1.BareMetalHostFinalizer) {
		return 0, nil
	}
	if p.detach() {
		return 0, nil
	}
	state := p.host.Status.Provisioning.State
	if deleting && deletesAtOnce(state) {
		return p.enter(p.stateAfterHost()), nil
	}
	handle := handlers()[state]
	if handle == nil {
		return 0, fmt.Errorf("BareMetalHost %s is in state %q, which is not simulated", client.ObjectKeyFromObject(p.host), state)
	}
	return handle(p, ctx)
}

// detachable are the states of a BareMetalHost in which BMO acts on the annotation detached. In every other state BMO ignores the
// annotation, and registration, inspection and provisioning go on.
var detachable = []bmov1alpha1.ProvisioningState{
	bmov1alpha1.StateAvailable, bmov1alpha1.StateProvisioned, bmov1alpha1.StateExternallyProvisioned,
}

// detach takes BMO's hands off the host while the annotation is there (M3-66). It tells whether that is so, or just ended.
func (p *hostPass) detach() bool {
	_, detached := p.host.Annotations[bmov1alpha1.DetachedAnnotation]
	if detached && p.host.DeletionTimestamp.IsZero() && slices.Contains(detachable, p.host.Status.Provisioning.State) {
		p.host.Status.OperationalStatus = bmov1alpha1.OperationalStatusDetached
		return true
	}
	if p.host.Status.OperationalStatus == bmov1alpha1.OperationalStatusDetached {
		p.host.Status.OperationalStatus = bmov1alpha1.OperationalStatusOK
		return true
	}
	return false
}

// deletesAtOnce tells whether a deleted host in this state has nothing to deprovision.
func deletesAtOnce(state bmov1alpha1.ProvisioningState) bool {
	switch state {
	case bmov1alpha1.StateNone, bmov1alpha1.StateUnmanaged, bmov1alpha1.StateRegistering, bmov1alpha1.StateInspecting,
		bmov1alpha1.StatePreparing, bmov1alpha1.StateAvailable, bmov1alpha1.StateExternallyProvisioned:
		return true
	}
	return false
}

// stateAfterHost is where a deleted host goes once nothing is on it: one without a BMC cannot be powered off.
func (p *hostPass) stateAfterHost() bmov1alpha1.ProvisioningState {
	if p.host.HasBMCDetails() {
		return bmov1alpha1.StatePoweringOffBeforeDelete
	}
	return bmov1alpha1.StateDeleting
}

func (p *hostPass) discover(context.Context) (time.Duration, error) {
	if !p.host.HasBMCDetails() {
		p.host.Status.OperationalStatus = bmov1alpha1.OperationalStatusDiscovered
		return p.enter(bmov1alpha1.StateUnmanaged), nil
	}
	p.host.Status.Provisioning.BootMode = p.host.BootMode()
	return p.enter(bmov1alpha1.StateRegistering), nil
}

func (p *hostPass) unmanaged(context.Context) (time.Duration, error) {
	if p.host.HasBMCDetails() {
		return p.enter(bmov1alpha1.StateRegistering), nil
	}
	return 0, nil
}

// register takes three writes: the BMC answers, the profile is set, the host moves on.
func (p *hostPass) register(ctx context.Context) (time.Duration, error) {
	status := &p.host.Status
	if status.ErrorType != "" && p.untilRetry() > 0 {
		return p.untilRetry(), nil
	}
	secret, err := p.credentials(ctx)
	if err != nil {
		return 0, err
	}
	switch {
	case p.remaining(p.Durations.Register) > 0:
		return p.remaining(p.Durations.Register), nil
	case p.faults.registration != "":
		p.host.UpdateTriedCredentials(*secret)
		return p.fail(bmov1alpha1.RegistrationError, p.faults.registration), nil
	case status.Provisioning.ID == "":
		p.clearError()
		p.host.UpdateTriedCredentials(*secret)
		status.Provisioning.ID = provisionedID
		return 0, nil
	case p.host.NeedsHardwareProfile():
		p.host.SetHardwareProfile(unknownProfile)
		p.copyRootDeviceHints()
		return 0, nil
	}
	p.host.UpdateGoodCredentials(*secret)
	status.ErrorCount = 0
	switch {
	case p.host.Spec.ExternallyProvisioned:
		return p.enter(bmov1alpha1.StateExternallyProvisioned), nil
	case p.host.NeedsHardwareInspection():
		return p.enter(bmov1alpha1.StateInspecting), nil
	}
	return p.enter(bmov1alpha1.StatePreparing), nil
}

func (p *hostPass) inspect(ctx context.Context) (time.Duration, error) {
	status := &p.host.Status
	switch {
	case status.ErrorType != "" && p.untilRetry() > 0:
		return p.untilRetry(), nil
	case status.ErrorType != "":
		p.clearError()
		p.metal.since = p.now
		return p.Durations.Inspect, nil
	case p.remaining(p.Durations.Inspect) > 0:
		return p.remaining(p.Durations.Inspect), nil
	case p.faults.inspection != "":
		return p.fail(bmov1alpha1.InspectionError, p.faults.inspection), nil
	}
	found := p.Hardware(p.host.DeepCopy())
	if err := p.keepHardware(ctx, found); err != nil {
		return 0, err
	}
	status.HardwareDetails = found
	status.ErrorCount = 0
	return p.enter(bmov1alpha1.StatePreparing), nil
}

// prepare first writes the architecture that inspection found into the spec (M3-72).
func (p *hostPass) prepare(context.Context) (time.Duration, error) {
	hardware := p.host.Status.HardwareDetails
	if p.host.Spec.Architecture == "" && hardware != nil && !p.host.InspectionDisabled() && hardware.CPU.Arch != "" {
		p.host.Spec.Architecture = hardware.CPU.Arch
		return 0, nil
	}
	if wait := p.remaining(p.Durations.Prepare); wait > 0 {
		return wait, nil
	}
	return p.enter(bmov1alpha1.StateAvailable), nil
}

func (p *hostPass) available(context.Context) (time.Duration, error) {
	if p.copyRootDeviceHints() {
		return 0, nil
	}
	if !p.hasWork() {
		p.metal.failed = 0
	}
	if !p.host.NeedsProvisioning() {
		return p.syncPower(), nil
	}
	if p.metal.failed < maxProvisioningRetries {
		p.clearError()
		return p.enter(bmov1alpha1.StateProvisioning), nil
	}
	limit := fmt.Sprintf("provisioning failed %d times, retry limit (%d) reached; change image or reset provisioningFailCount to retry",
		p.metal.failed, maxProvisioningRetries)
	if p.host.Status.ErrorMessage != limit {
		p.fail(bmov1alpha1.ProvisioningError, limit)
	}
	return 0, nil
}

// provision ends in the state provisioned, or in an error from which the host goes through deprovisioning (M3-62).
func (p *hostPass) provision(ctx context.Context) (time.Duration, error) {
	status := &p.host.Status
	switch {
	case !p.host.DeletionTimestamp.IsZero() || !p.hasWork():
		return p.enter(bmov1alpha1.StateDeprovisioning), nil
	case status.ErrorType == bmov1alpha1.ProvisioningError:
		if p.metal.failed > 0 && p.untilRetry() > 0 {
			return p.untilRetry(), nil
		}
		p.onceWritten(func() { p.metal.failed++ })
		return p.enter(bmov1alpha1.StateDeprovisioning), nil
	case p.faults.neverProvision:
		return 0, nil
	case p.remaining(p.Durations.Provision) > 0:
		return p.remaining(p.Durations.Provision), nil
	}
	if p.faults.provisioningFails() {
		p.onceWritten(func() { p.config.faults.provisioningFailed(client.ObjectKeyFromObject(p.host)) })
		p.fail(bmov1alpha1.ProvisioningError, p.faults.provisioning)
		return 0, nil
	}
	data, ready, err := p.userData(ctx)
	if err != nil || !ready {
		return p.Durations.ErrorRetry, err
	}
	if p.UserData != nil {
		p.UserData(client.ObjectKeyFromObject(p.host), data)
	}
	if p.host.Spec.Image != nil {
		status.Provisioning.Image = *p.host.Spec.Image
	}
	status.Provisioning.CustomDeploy = p.host.Spec.CustomDeploy
	status.ErrorCount = 0
	p.onceWritten(func() { p.metal.failed = 0 })
	return p.enter(bmov1alpha1.StateProvisioned), nil
}

// hasWork tells whether the spec asks for anything on the host.
func (p *hostPass) hasWork() bool {
	image, deploy := p.host.Spec.Image, p.host.Spec.CustomDeploy
	return image != nil && image.URL != "" || deploy != nil && deploy.Method != ""
}

// userData returns what a disk image finds on its config drive, and whether it can be read. A live ISO has none (M3-5); a Secret that is
// not there, or without a key, shows in no status (M3-6).
func (p *hostPass) userData(ctx context.Context) (data []byte, ready bool, err error) {
	image, ref := p.host.Spec.Image, p.host.Spec.UserData
	if ref == nil || image == nil || image.DiskFormat != nil && *image.DiskFormat == formatLiveISO {
		return nil, true, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: p.host.Namespace, Name: ref.Name}
	if err := p.client.Get(ctx, key, secret); err != nil {
		return nil, false, client.IgnoreNotFound(err)
	}
	for _, name := range []string{"userData", "value"} {
		if data, found := secret.Data[name]; found {
			return data, true, nil
		}
	}
	return nil, false, nil
}

// provisioned leaves the host alone until its image is taken away or replaced (M3-24).
func (p *hostPass) provisioned(context.Context) (time.Duration, error) {
	status := &p.host.Status
	deployed := status.Provisioning.CustomDeploy
	switch {
	case !p.host.DeletionTimestamp.IsZero() || !p.hasWork(),
		p.host.Spec.Image != nil && p.host.Spec.Image.URL != status.Provisioning.Image.URL,
		p.host.Spec.CustomDeploy != nil && (deployed == nil || deployed.Method != p.host.Spec.CustomDeploy.Method):
		return p.enter(bmov1alpha1.StateDeprovisioning), nil
	}
	return p.syncBMC()
}

func (p *hostPass) externallyProvisioned(context.Context) (time.Duration, error) {
	return p.syncBMC()
}

// syncBMC is the registration that BMO repeats at every look at a host in use (M3-63), and then the power.
func (p *hostPass) syncBMC() (time.Duration, error) {
	failing := p.host.Status.ErrorType == bmov1alpha1.RegistrationError
	switch {
	case failing && p.untilRetry() > 0:
		return p.untilRetry(), nil
	case p.faults.registration != "":
		return p.fail(bmov1alpha1.RegistrationError, p.faults.registration), nil
	case failing:
		p.clearError()
		return 0, nil
	}
	return p.syncPower(), nil
}

// syncPower makes the power state what the spec asks for. A power error is cleared by a write of its own before the next
// attempt (M3-60), and stays when nothing is left to attempt.
func (p *hostPass) syncPower() time.Duration {
	status := &p.host.Status
	failing := status.ErrorType == bmov1alpha1.PowerManagementError
	_, reboot := p.host.Annotations[bmov1alpha1.RebootAnnotationPrefix]
	wanted := p.host.Spec.Online && !reboot
	switch {
	case reboot && !status.PoweredOn:
		return p.endReboot()
	case status.PoweredOn == wanted:
		return 0
	case failing && p.untilRetry() > 0:
		return p.untilRetry()
	case p.faults.power != "":
		return p.fail(bmov1alpha1.PowerManagementError, p.faults.power)
	case failing:
		p.clearError()
		return 0
	}
	status.PoweredOn = wanted
	p.onceWritten(func() {
		p.metal.powerChanged = p.now
		if !wanted && p.PowerOff != nil {
			p.PowerOff(client.ObjectKeyFromObject(p.host))
		}
	})
	if status.OperationalStatus == bmov1alpha1.OperationalStatusError {
		p.clearError()
	}
	return 0
}

// endReboot takes the request for one power cycle off a host that has been without power for a moment; the next pass powers it on again.
func (p *hostPass) endReboot() time.Duration {
	if wait := p.metal.powerChanged.Add(p.Durations.Prepare).Sub(p.now); wait > 0 {
		return wait
	}
	delete(p.host.Annotations, bmov1alpha1.RebootAnnotationPrefix)
	return 0
}

// copyRootDeviceHints keeps the hints that are in force in the status (M3-73). It tells whether they were missing there.
func (p *hostPass) copyRootDeviceHints() bool {
	provisioning := &p.host.Status.Provisioning
	if provisioning.RootDeviceHints != nil || p.host.Spec.RootDeviceHints == nil {
		return false
	}
	provisioning.RootDeviceHints = p.host.Spec.RootDeviceHints.DeepCopy()
	return true
}
