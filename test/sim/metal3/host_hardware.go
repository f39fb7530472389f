// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	secretFinalizer       = "baremetalhost.metal3.io/secret"
	hardwareDataFinalizer = "baremetalhost.metal3.io/hardwareData"
	environmentLabel      = "environment.metal3.io"
	environmentValue      = "baremetal"

	defaultDiskBytes = 480103981056
	defaultRAMMiB    = 131072
	defaultCores     = 64
)

// DefaultHardware describes a host that has said nothing about itself: one NIC with its boot MAC address, the serial number
// SN-<name>, and one disk, which is the one that the root device hints name if they name one.
func DefaultHardware(host *bmov1alpha1.BareMetalHost) *bmov1alpha1.HardwareDetails {
	disk := "/dev/sda"
	if hints := host.Spec.RootDeviceHints; hints != nil && hints.DeviceName != "" {
		disk = hints.DeviceName
	}
	return &bmov1alpha1.HardwareDetails{
		SystemVendor: bmov1alpha1.HardwareSystemVendor{
			Manufacturer: "ACME", ProductName: "Server-1", SerialNumber: "SN-" + host.Name,
		},
		RAMMebibytes: defaultRAMMiB,
		NIC:          []bmov1alpha1.NIC{{Name: "eno1", MAC: host.Spec.BootMACAddress, PXE: true}},
		Storage: []bmov1alpha1.Storage{{
			Name: disk, Type: bmov1alpha1.SSD, SizeBytes: defaultDiskBytes, SerialNumber: "DISK-" + host.Name,
		}},
		CPU: bmov1alpha1.CPU{Arch: architecture(), Count: defaultCores},
	}
}

// architecture names this machine's architecture as hardware inventories do.
func architecture() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// takeHardwareAnnotation moves the hardware details of the annotation into the status and drops the annotation, in two
// writes (M3-72). It tells whether one of them is to be done.
func (p *hostPass) takeHardwareAnnotation() (bool, error) {
	text, found := p.host.Annotations[bmov1alpha1.HardwareDetailsAnnotation]
	if !found {
		return false, nil
	}
	if p.host.Status.HardwareDetails != nil {
		delete(p.host.Annotations, bmov1alpha1.HardwareDetailsAnnotation)
		return true, nil
	}
	hardware := &bmov1alpha1.HardwareDetails{}
	if err := json.Unmarshal([]byte(text), hardware); err != nil {
		return false, fmt.Errorf("read the annotation %s of BareMetalHost %s: %w",
			bmov1alpha1.HardwareDetailsAnnotation, client.ObjectKeyFromObject(p.host), err)
	}
	p.host.Status.HardwareDetails = hardware
	return true, nil
}

// keepHardware keeps what inspection has found in a HardwareData of the host's name, as it is found nowhere but by inspection (M3-72).
func (p *hostPass) keepHardware(ctx context.Context, found *bmov1alpha1.HardwareDetails) error {
	data := p.hardwareData()
	_, err := controllerutil.CreateOrPatch(ctx, p.client, data, func() error {
		data.Spec.HardwareDetails = found
		controllerutil.AddFinalizer(data, hardwareDataFinalizer)
		return controllerutil.SetControllerReference(p.host, data, p.client.Scheme())
	})
	if err != nil {
		return fmt.Errorf("keep the hardware of BareMetalHost %s: %w", client.ObjectKeyFromObject(p.host), err)
	}
	return nil
}

// releaseHardware takes BMO's finalizer off the host's HardwareData, which goes with the host.
func (p *hostPass) releaseHardware(ctx context.Context) error {
	data := p.hardwareData()
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(data), data); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := data.DeepCopy()
	if !controllerutil.RemoveFinalizer(data, hardwareDataFinalizer) {
		return nil
	}
	if err := p.client.Patch(ctx, data, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("release HardwareData %s: %w", client.ObjectKeyFromObject(data), client.IgnoreNotFound(err))
	}
	return nil
}

// hardwareData is the HardwareData of the host, without its content.
func (p *hostPass) hardwareData() *bmov1alpha1.HardwareData {
	return &bmov1alpha1.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: p.host.Namespace, Name: p.host.Name}}
}

// credentials returns the host's BMC Secret and makes it BMO's. A Secret that does not exist stands for good credentials: no
// BMC checks them here.
func (p *hostPass) credentials(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := p.host.CredentialsKey()
	if err := p.client.Get(ctx, key, secret); err != nil {
		secret.Namespace, secret.Name = key.Namespace, key.Name
		return secret, client.IgnoreNotFound(err)
	}
	if controllerutil.ContainsFinalizer(secret, secretFinalizer) {
		return secret, nil
	}
	before := secret.DeepCopy()
	controllerutil.AddFinalizer(secret, secretFinalizer)
	setLabel(secret, environmentLabel, environmentValue)
	if err := controllerutil.SetOwnerReference(p.host, secret, p.client.Scheme()); err != nil {
		return nil, fmt.Errorf("own Secret %s of BareMetalHost %s: %w", key, p.host.Name, err)
	}
	if err := p.client.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("adopt Secret %s of BareMetalHost %s: %w", key, p.host.Name, err)
	}
	return secret, nil
}

// releaseCredentials takes BMO's finalizer off the host's BMC Secret.
func (p *hostPass) releaseCredentials(ctx context.Context) error {
	secret := &corev1.Secret{}
	key := p.host.CredentialsKey()
	if err := p.client.Get(ctx, key, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := secret.DeepCopy()
	if !controllerutil.RemoveFinalizer(secret, secretFinalizer) {
		return nil
	}
	if err := p.client.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("release Secret %s of BareMetalHost %s: %w", key, p.host.Name, err)
	}
	return nil
}
