// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	settleTimeout = 2 * time.Minute
	pollInterval  = 20 * time.Millisecond
)

// TestContractSimulator runs everything against an API server for each version of CAPM3's API.
func TestContractSimulator(t *testing.T) {
	cp := startControlPlane(t.Context(), t)
	servers := startServers(t.Context(), t, cp)
	t.Run("CORE-20 CORE-21 CORE-22 CORE-23 CORE-24 it does what the real managers were recorded to do", func(t *testing.T) {
		for _, s := range servers {
			for _, scenario := range scenarios() {
				t.Run(s.shape.version+"/"+scenario.file, func(t *testing.T) { conform(t, s, scenario) })
			}
		}
	})
	for _, s := range servers {
		t.Run(s.shape.version+"/default host", func(t *testing.T) { checkDefaultHost(t, s) })
		t.Run(s.shape.version+"/user data", func(t *testing.T) { checkUserData(t, s) })
		t.Run(s.shape.version+"/moved host", func(t *testing.T) { checkMovedHost(t, s) })
		t.Run(s.shape.version+"/faults", func(t *testing.T) { checkFaults(t, s) })
	}
	t.Run("dead BMC", func(t *testing.T) { checkDeadBMC(t, servers[0]) })
	t.Run("admission", func(t *testing.T) { checkServedAdmission(t, cp) })
}

// hostWorld is a namespace with a simulator of default options.
type hostWorld struct {
	Gomega
	*server
	t         *testing.T
	namespace string
	faults    *Faults
}

func newHostWorld(t *testing.T, s *server, namespace string, options Options) *hostWorld {
	t.Helper()
	w := &hostWorld{Gomega: NewWithT(t), server: s, t: t, namespace: namespace}
	w.Expect(s.client.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	w.faults = startSimulator(w.t.Context(), t, s, namespace, options).Faults()
	return w
}

func (w *hostWorld) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

func (w *hostWorld) create(name string, image *bmov1alpha1.Image) {
	host := &bmov1alpha1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: bmov1alpha1.BareMetalHostSpec{
			Online: true, BootMACAddress: "52:54:00:00:00:01", Image: image,
			BMC: bmov1alpha1.BMCDetails{Address: "redfish://192.0.2.1/1", CredentialsName: name + "-bmc"},
		},
	}
	w.Expect(w.client.Create(w.t.Context(), host)).To(Succeed())
}

func (w *hostWorld) get(name string) *bmov1alpha1.BareMetalHost {
	host := &bmov1alpha1.BareMetalHost{}
	w.Expect(w.client.Get(w.t.Context(), w.key(name), host)).To(Succeed())
	return host
}

func (w *hostWorld) eventually(
	name string, state bmov1alpha1.ProvisioningState, errorType bmov1alpha1.ErrorType,
) *bmov1alpha1.BareMetalHost {
	w.Eventually(func(g Gomega) {
		host := &bmov1alpha1.BareMetalHost{}
		g.Expect(w.client.Get(w.t.Context(), w.key(name), host)).To(Succeed())
		g.Expect(host.Status.Provisioning.State).To(Equal(state))
		g.Expect(host.Status.ErrorType).To(Equal(errorType))
	}, settleTimeout, pollInterval).Should(Succeed())
	return w.get(name)
}

func liveISO() *bmov1alpha1.Image {
	format := formatLiveISO
	return &bmov1alpha1.Image{URL: "http://192.0.2.250/discovery.iso", DiskFormat: &format}
}

// checkDefaultHost takes a host of which only the BMC and the boot MAC address are known from nothing to gone.
func checkDefaultHost(t *testing.T, s *server) {
	cut := make(chan client.ObjectKey, 10)
	w := newHostWorld(t, s, "default-host", Options{PowerOff: func(host client.ObjectKey) { cut <- host }})
	w.create("h", nil)
	host := w.eventually("h", bmov1alpha1.StateAvailable, "")
	history := host.Status.OperationHistory
	w.Expect(history.Register.End.Before(&history.Register.Start)).To(BeFalse(), "the registration ended")
	w.Expect(history.Inspect.End.IsZero()).To(BeFalse(), "the inspection ended")
	w.Expect(history.Provision.Start.IsZero()).To(BeTrue(), "no image was written to the host")
	w.Expect(host.Status.HardwareDetails).To(Equal(DefaultHardware(host)))
	w.Expect(host.Status.HardwareDetails.SystemVendor.SerialNumber).To(Equal("SN-h"))
	data := &bmov1alpha1.HardwareData{}
	w.Expect(w.client.Get(w.t.Context(), w.key("h"), data)).To(Succeed())
	w.Expect(data.Spec.HardwareDetails).To(Equal(host.Status.HardwareDetails), "inspection keeps what it found")
	w.Expect(data.Finalizers).To(ConsistOf(hardwareDataFinalizer))
	w.Expect(metav1.IsControlledBy(data, host)).To(BeTrue())

	before := host.DeepCopy()
	host.Spec.Image = liveISO()
	w.Expect(w.client.Patch(w.t.Context(), host, client.MergeFrom(before))).To(Succeed())
	host = w.eventually("h", bmov1alpha1.StateProvisioned, "")
	w.Expect(host.Status.Provisioning.Image.URL).To(Equal(host.Spec.Image.URL))
	provision := host.Status.OperationHistory.Provision
	w.Expect(provision.Start.IsZero()).To(BeFalse(), "the provisioning began")
	w.Expect(provision.End.IsZero()).To(BeFalse(), "the provisioning ended")
	w.Expect(provision.End.Before(&provision.Start)).To(BeFalse())

	before = host.DeepCopy()
	metav1.SetMetaDataAnnotation(&host.ObjectMeta, bmov1alpha1.RebootAnnotationPrefix, "")
	w.Expect(w.client.Patch(w.t.Context(), host, client.MergeFrom(before))).To(Succeed())
	w.Eventually(cut, settleTimeout).Should(Receive(Equal(w.key("h"))), "the BMC is told, whoever misses that the host is off")
	w.Eventually(func() map[string]string { return w.get("h").Annotations }, settleTimeout, pollInterval).
		ShouldNot(HaveKey(bmov1alpha1.RebootAnnotationPrefix))
	w.Eventually(func() bool { return w.get("h").Status.PoweredOn }, settleTimeout, pollInterval).Should(BeTrue())

	w.Expect(w.client.Delete(w.t.Context(), host)).To(Succeed())
	w.Eventually(func() bool {
		return apierrors.IsNotFound(w.client.Get(w.t.Context(), w.key("h"), host))
	}, settleTimeout, pollInterval).Should(BeTrue())
	w.Expect(w.client.Get(w.t.Context(), w.key("h"), data)).To(Succeed())
	w.Expect(data.Finalizers).To(BeEmpty(), "nothing keeps the garbage collector from deleting it")
}

// checkUserData boots a host from a disk image, once its Secret is there, and from a live ISO, which gets no user data.
func checkUserData(t *testing.T, s *server) {
	delivered := make(chan string, 10)
	w := newHostWorld(t, s, "user-data", Options{UserData: func(_ client.ObjectKey, data []byte) { delivered <- string(data) }})
	w.create("h", nil)
	host := w.eventually("h", bmov1alpha1.StateAvailable, "")
	before := host.DeepCopy()
	host.Spec.Image = &bmov1alpha1.Image{URL: "http://192.0.2.250/coreos.qcow2", Checksum: "abc"}
	host.Spec.UserData = &corev1.SecretReference{Name: "h", Namespace: w.namespace}
	w.Expect(w.client.Patch(w.t.Context(), host, client.MergeFrom(before))).To(Succeed())
	w.eventually("h", bmov1alpha1.StateProvisioning, "")
	w.Expect(w.client.Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "h",
		},
		StringData: map[string]string{"value": "ignition", "format": "ignition"},
	})).To(Succeed())
	host = w.eventually("h", bmov1alpha1.StateProvisioned, "")
	w.Expect(<-delivered).To(Equal("ignition"))

	before = host.DeepCopy()
	host.Spec.Image = liveISO()
	w.Expect(w.client.Patch(w.t.Context(), host, client.MergeFrom(before))).To(Succeed())
	w.Eventually(func() string { return w.get("h").Status.Provisioning.Image.URL }, settleTimeout, pollInterval).Should(Equal(liveISO().URL))
	w.Eventually(delivered, settleTimeout).Should(Receive(BeEmpty()))
}

// checkMovedHost takes a host over as `clusterctl move` leaves it: paused, without a status, which is in an annotation (METAL3 M3-64).
func checkMovedHost(t *testing.T, s *server) {
	w := newHostWorld(t, s, "moved-host", Options{})
	kept := bmov1alpha1.BareMetalHostStatus{PoweredOn: true, OperationalStatus: bmov1alpha1.OperationalStatusOK}
	kept.Provisioning.State, kept.Provisioning.Image = bmov1alpha1.StateProvisioned, *liveISO()
	status, err := json.Marshal(kept)
	w.Expect(err).NotTo(HaveOccurred())
	host := &bmov1alpha1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "h", Annotations: map[string]string{
			bmov1alpha1.PausedAnnotation: "metal3.io/capm3", bmov1alpha1.StatusAnnotation: string(status),
		}},
		Spec: bmov1alpha1.BareMetalHostSpec{
			Online: true, BootMACAddress: "52:54:00:00:00:01", Image: liveISO(),
			BMC: bmov1alpha1.BMCDetails{Address: "redfish://192.0.2.1/1", CredentialsName: "h-bmc"},
		},
	}
	w.Expect(w.client.Create(w.t.Context(), host)).To(Succeed())
	before := host.DeepCopy()
	delete(host.Annotations, bmov1alpha1.PausedAnnotation)
	w.Expect(w.client.Patch(w.t.Context(), host, client.MergeFrom(before))).To(Succeed())

	host = w.eventually("h", bmov1alpha1.StateProvisioned, "")
	w.Expect(host.Status.Provisioning.Image).To(Equal(*liveISO()))
	w.Expect(host.Status.HardwareDetails).To(Equal(DefaultHardware(host)))
	w.Expect(host.Status.OperationHistory.Provision.Start.IsZero()).To(BeTrue(), "nothing was written to its disk")
	w.Eventually(func() map[string]string { return w.get("h").Annotations }, settleTimeout, pollInterval).
		ShouldNot(HaveKey(bmov1alpha1.StatusAnnotation))
}

// checkFaults walks one host through every fault and out of it.
func checkFaults(t *testing.T, s *server) {
	w := newHostWorld(t, s, "faults", Options{Speed: 4})
	host := w.key("h")
	w.faults.RegistrationError(host, "no BMC")
	w.create("h", liveISO())
	failed := w.eventually("h", bmov1alpha1.StateRegistering, bmov1alpha1.RegistrationError)
	w.Expect(failed.Status.ErrorMessage).To(Equal("no BMC"))

	w.faults.Clear(host)
	w.faults.InspectionError(host, "no answer")
	w.eventually("h", bmov1alpha1.StateInspecting, bmov1alpha1.InspectionError)

	w.faults.Clear(host)
	w.faults.ProvisioningError(host, "no media", 0)
	w.eventually("h", bmov1alpha1.StateProvisioning, bmov1alpha1.ProvisioningError)
	w.faults.Clear(host)
	w.eventually("h", bmov1alpha1.StateProvisioned, "")

	w.faults.RegistrationError(host, "BMC lost")
	w.eventually("h", bmov1alpha1.StateProvisioned, bmov1alpha1.RegistrationError)
	w.faults.Clear(host)
	w.eventually("h", bmov1alpha1.StateProvisioned, "")

	w.faults.NeverProvision(w.key("held"))
	w.create("held", liveISO())
	held := w.eventually("held", bmov1alpha1.StateProvisioning, "").Status.OperationHistory.Provision
	w.Expect(held.Start.IsZero()).To(BeFalse(), "the provisioning began")
	w.Expect(held.End.IsZero()).To(BeTrue(), "the provisioning has not ended")
	w.Consistently(func() bmov1alpha1.ProvisioningState {
		return w.get("held").Status.Provisioning.State
	}, time.Second, pollInterval).Should(Equal(bmov1alpha1.StateProvisioning))
	w.faults.Clear(w.key("held"))
	w.eventually("held", bmov1alpha1.StateProvisioned, "")

	w.faults.Away(true)
	w.Expect(w.faults.IsAway()).To(BeTrue())
	w.create("alone", liveISO())
	w.Consistently(func() bmov1alpha1.ProvisioningState {
		return w.get("alone").Status.Provisioning.State
	}, time.Second, pollInterval).Should(BeEmpty(), "nobody looks at it")
	w.faults.Away(false)
	w.eventually("alone", bmov1alpha1.StateProvisioned, "")
}
