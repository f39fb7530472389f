// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkDeadBMC frees hosts whose BMCs do not answer: they stay in the state deprovisioning until the BMC is back, or until their
// BareMetalHost is deleted and that has failed often enough (M3-56).
func checkDeadBMC(t *testing.T, s *server) {
	torn := make(chan client.ObjectKey, 10)
	w := newHostWorld(t, s, "dead-bmc", Options{Speed: 4, Deprovisioned: func(host client.ObjectKey, _ bool) { torn <- host }})
	free := func(name string) {
		host := w.get(name)
		before := host.DeepCopy()
		host.Spec.Image, host.Spec.Online = nil, false
		w.Expect(w.client.Patch(t.Context(), host, client.MergeFrom(before))).To(Succeed())
	}
	for _, name := range []string{"back", "lost", "unknown"} {
		w.create(name, liveISO())
		w.eventually(name, bmov1alpha1.StateProvisioned, "")
	}
	w.faults.PowerFailure(w.key("back"), "Failed to tear down: no power")
	w.faults.PowerFailure(w.key("lost"), "Failed to tear down: no power")
	w.faults.RegistrationError(w.key("unknown"), "no BMC")
	free("back")
	free("lost")
	free("unknown")
	for name, kind := range map[string]bmov1alpha1.ErrorType{
		"back": bmov1alpha1.ProvisioningError, "lost": bmov1alpha1.ProvisioningError, "unknown": bmov1alpha1.RegistrationError,
	} {
		w.eventually(name, bmov1alpha1.StateDeprovisioning, kind)
		w.eventually(name, bmov1alpha1.StateDeprovisioning, "")
		w.Eventually(func() int { return w.get(name).Status.ErrorCount }, settleTimeout, pollInterval).Should(BeNumerically(">", 5), name)
		w.Expect(w.get(name).Status.Provisioning.State).To(Equal(bmov1alpha1.StateDeprovisioning), "there is no limit")
	}
	w.Consistently(torn, time.Second).ShouldNot(Receive())

	w.faults.Clear(w.key("back"))
	w.Expect(w.eventually("back", bmov1alpha1.StateAvailable, "").Status.ErrorCount).To(BeZero())
	w.Expect(<-torn).To(Equal(w.key("back")))

	for _, name := range []string{"lost", "unknown"} {
		w.Expect(w.client.Delete(t.Context(), w.get(name))).To(Succeed())
		w.Eventually(func() bool {
			return apierrors.IsNotFound(w.client.Get(t.Context(), w.key(name), &bmov1alpha1.BareMetalHost{}))
		}, settleTimeout, pollInterval).Should(BeTrue(), name)
	}
	w.Expect(torn).To(BeEmpty(), "they run on")
}
