// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	simmetal3 "github.com/capi-openshift/agent-providers/test/sim/metal3"
)

const (
	// PullSecretName is the Secret of CreateInputs that the templates use by default.
	PullSecretName = "pull-secret"

	// machineNetwork and machineNetwork6 hold the addresses of hosts and clusters. They are on loopback, because an installed
	// cluster's API does listen on its address and an API address has to be in the network of the hosts; those of hosts are
	// names only.
	machineNetwork  = "127.0.0.0/8"
	machineNetwork6 = "::/64"
	hostAddresses   = "127.10.255.%d"
	hostAddresses6  = "::ff:%x"
	hostPrefix      = 8
	firstHostByte   = 10
	// ipFamilyLabel marks a host that has an IPv6 address and no other.
	ipFamilyLabel = "sandbox.example.com/ip-family"
	ipFamily6     = "IPv6"
	// maxHosts keeps addresses within one byte.
	maxHosts = 200

	hostName = "host-%d"

	hostsTimeout = time.Minute
)

// CreateInputs makes what the user brings: the namespace, the pull secret, and BareMetalHosts host-0 … host-<hosts-1>
// with their BMC Secrets. It returns when all of them are available.
func (w *World) CreateInputs(ctx context.Context, namespace string, hosts int) error {
	return w.createInputs(ctx, namespace, hosts, nil, false)
}

// CreateInputsFor makes what the user brings for a cluster: CreateInputs, with hosts of the IP family of the cluster's
// address, and what only clusters of its template need.
func (w *World) CreateInputsFor(ctx context.Context, r ClusterRequest, hosts int) error {
	var labels map[string]string
	if address, err := netip.ParseAddr(r.Address); err == nil && address.Is6() {
		labels = map[string]string{ipFamilyLabel: ipFamily6}
	}
	if err := w.createInputs(ctx, r.Namespace, hosts, labels, r.HostNetworks); err != nil {
		return err
	}
	// A topology with a template of its own is a flavor of that name.
	if prepare := flavors[cmp.Or(r.Template, string(r.Topology))].prepare; prepare != nil {
		return prepare(ctx, w, r, hosts)
	}
	return nil
}

func (w *World) createInputs(ctx context.Context, namespace string, hosts int, labels map[string]string, networks bool) error {
	if hosts > maxHosts {
		return fmt.Errorf("%d hosts are too many, at most %d", hosts, maxHosts)
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PullSecretName},
			Type:       corev1.SecretTypeDockerConfigJson,
			StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"registry.invalid":{"auth":"c2FuZGJveDpzYW5kYm94"}}}`},
		},
	}
	for i := range hosts {
		secret, host := newHost(namespace, i, labels)
		if networks {
			// Whichever host a worker gets, both its disk and its network are chosen.
			host.Spec.PreprovisioningNetworkDataName, host.Spec.RootDeviceHints = networkData(host.Name), hintsFor(secondDisk(host.Name))
			objects = append(objects, newNetworkData(namespace, i))
		}
		objects = append(objects, secret, host)
	}
	for _, object := range objects {
		if err := w.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("cannot create %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
		}
	}
	return w.Watch.AwaitIn(ctx, namespace, hostsTimeout, "the BareMetalHosts to become available", w.HostsAvailable(namespace, hosts))
}

// newHost makes a BareMetalHost and the Secret of its BMC.
func newHost(namespace string, i int, labels map[string]string) (*corev1.Secret, *bmov1alpha1.BareMetalHost) {
	name := fmt.Sprintf(hostName, i)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-bmc"},
		StringData: map[string]string{"username": "admin", "password": "admin"},
	}
	host := &bmov1alpha1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: bmov1alpha1.BareMetalHostSpec{
			BootMACAddress: bootMAC(namespace, i),
			BMC: bmov1alpha1.BMCDetails{
				Address:         "redfish-virtualmedia+http://bmc.invalid/redfish/v1/Systems/" + name,
				CredentialsName: secret.Name,
			},
			AutomatedCleaningMode: bmov1alpha1.CleaningModeMetadata,
			RootDeviceHints:       rootDeviceHints(name, i),
		},
	}
	return secret, host
}

// rootDeviceHints ask every second host for a disk that the Assisted Installer would not choose by itself.
func rootDeviceHints(host string, i int) *bmov1alpha1.RootDeviceHints {
	if i%2 == 0 {
		return nil
	}
	return hintsFor(secondDisk(host))
}

func hintsFor(serialNumber string) *bmov1alpha1.RootDeviceHints {
	return &bmov1alpha1.RootDeviceHints{SerialNumber: serialNumber}
}

// secondDisk is the serial number of a host's second disk.
func secondDisk(host string) string { return "DISK-" + host + "-2" }

// bootMAC is a host's MAC address. Hosts of two namespaces are different machines, so they share neither it nor a serial number.
func bootMAC(namespace string, i int) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace)) // It never fails.
	sum := hash.Sum32()
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", byte(sum>>8), byte(sum), byte(i))
}

// inspected is what inspection finds in a host: it has an IP address that follows from its name.
func (o WorldOptions) inspected(host *bmov1alpha1.BareMetalHost) *bmov1alpha1.HardwareDetails {
	hardware := simmetal3.DefaultHardware(host)
	hardware.SystemVendor.SerialNumber = "SN-" + host.Namespace + "-" + host.Name
	second := hardware.Storage[0]
	second.Name, second.SerialNumber = "/dev/sdb", secondDisk(host.Name)
	hardware.Storage = append(hardware.Storage, second)
	var index int
	if _, err := fmt.Sscanf(host.Name, hostName, &index); err == nil {
		hardware.NIC[0].IP = hostAddress(index, host.Labels[ipFamilyLabel] == ipFamily6)
	}
	if o.Inspect != nil {
		o.Inspect(host, hardware)
	}
	return hardware
}

// hostAddress is the IP address of a host.
func hostAddress(index int, six bool) string {
	if six {
		return fmt.Sprintf(hostAddresses6, firstHostByte+index)
	}
	return fmt.Sprintf(hostAddresses, firstHostByte+index)
}

// machineNetworkOf is the network of the hosts of a cluster whose API has this address.
func machineNetworkOf(address netip.Addr) string {
	if address.Is6() {
		return machineNetwork6
	}
	return machineNetwork
}

// HostsAvailable checks that the namespace has this many BareMetalHosts and that all are available, consumed by nobody
// and without an image.
func (w *World) HostsAvailable(namespace string, hosts int) Check {
	return func(ctx context.Context) (string, error) {
		list := &bmov1alpha1.BareMetalHostList{}
		if err := w.Watch.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		var busy []error
		for i := range list.Items {
			host := &list.Items[i]
			if host.Status.Provisioning.State != bmov1alpha1.StateAvailable || host.Spec.ConsumerRef != nil || host.Spec.Image != nil {
				busy = append(busy, fmt.Errorf("BareMetalHost %s is %q %s", host.Name, host.Status.Provisioning.State, host.Status.ErrorMessage))
			}
		}
		if len(list.Items) != hosts {
			busy = append(busy, fmt.Errorf("there are %d BareMetalHosts of %d", len(list.Items), hosts))
		}
		return text(errors.Join(busy...)), nil
	}
}

// text is an error's message, or "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
