// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capi-openshift/agent-providers/internal/metal3"
)

var infraMachineKind = schema.GroupVersionKind{Group: metal3.InfrastructureGroup, Version: "v1beta2", Kind: metal3.MachineKind}

const (
	metal3Finalizer  = "metal3machine.infrastructure.cluster.x-k8s.io"
	rebootAnnotation = "reboot.metal3.io"
)

// infraMachine is a Metal3Machine; an empty one when there is none of that name.
func (w *world) infraMachine(name string) *unstructured.Unstructured {
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(infraMachineKind)
	if !w.get(name, infra) {
		return &unstructured.Unstructured{}
	}
	return infra
}

// metal3 is cluster-api-provider-metal3, and then baremetal-operator.
func (w *world) metal3() {
	if w.metal3Away {
		return
	}
	for _, m := range w.infraMachines() {
		if m.GetDeletionTimestamp() != nil {
			w.releaseHost(&m)
		} else if len(m.GetOwnerReferences()) > 0 {
			w.associate(&m)
		}
	}
	for _, h := range w.hosts() {
		w.operateHost(&h)
	}
}

// hostOf is the BareMetalHost that a Metal3Machine consumes; nil without one.
func (w *world) hostOf(m *unstructured.Unstructured) *bmov1alpha1.BareMetalHost {
	for _, h := range w.hosts() {
		if metal3.Consumes(&h, m) {
			return &h
		}
	}
	return nil
}

// associate takes a host for a Metal3Machine, and finds its Node.
func (w *world) associate(m *unstructured.Unstructured) {
	if controllerutil.AddFinalizer(m, metal3Finalizer) {
		w.must(w.hub.Update(w.t.Context(), m))
		return
	}
	h := w.hostOf(m)
	_, annotated := metal3.HostKey(m)
	switch {
	case !annotated && (h == nil || h.Spec.Image == nil): // Without an image, a user has pinned it.
		w.takeHost(m)
	case h == nil:
	case !annotated: // The host has its consumer before (METAL3 M3-13).
		change(w, m, func(m *unstructured.Unstructured) {
			m.SetAnnotations(map[string]string{metal3.HostAnnotation: namespace + "/" + h.Name})
		})
	case metal3ProviderID(m) != "" || w.servers[h.Name].labels[metal3.NodeUIDLabel] == string(h.UID): // METAL3 M3-34, M3-35
		change(w, m, func(m *unstructured.Unstructured) {
			w.must(unstructured.SetNestedField(m.Object, "metal3://"+namespace+"/"+h.Name+"/"+m.GetName(), "spec", "providerID"))
			w.must(unstructured.SetNestedField(m.Object, true, "status", "initialization", "provisioned"))
		})
	}
}

func metal3ProviderID(m *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
	return id
}

// takeHost takes the pinned or the first free host once there are bootstrap data, and gives it the image as it is now, which is never done
// again. The Secret's name is guessed, for core says that there are data before it names them (METAL3 M3-4, M3-10, M3-23).
func (w *world) takeHost(m *unstructured.Unstructured) {
	config := w.config(m.GetName())
	if config == nil || !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) {
		return
	}
	candidates, err := metal3.Candidates(m, w.hosts())
	w.must(err)
	at := slices.IndexFunc(candidates, func(h bmov1alpha1.BareMetalHost) bool { return metal3.Consumes(&h, m) }) // METAL3 M3-14
	if at < 0 {
		at = slices.IndexFunc(candidates, func(h bmov1alpha1.BareMetalHost) bool {
			return h.Spec.ConsumerRef == nil && h.Status.Provisioning.State == bmov1alpha1.StateAvailable
		})
	}
	if at < 0 {
		return
	}
	change(w, &candidates[at], func(h *bmov1alpha1.BareMetalHost) {
		format, _, _ := unstructured.NestedString(m.Object, "spec", "image", "diskFormat")
		h.Spec.Image = &bmov1alpha1.Image{URL: metal3.ImageURL(m), DiskFormat: &format}
		h.Spec.UserData = &corev1.SecretReference{Namespace: namespace, Name: config.Name}
		h.Spec.Online = true
		h.Spec.ConsumerRef = consumer(m.GetName())
	})
}

// consumer refers to a Metal3Machine.
func consumer(machine string) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind: metal3.MachineKind, APIVersion: infraMachineKind.GroupVersion().String(), Namespace: namespace, Name: machine,
	}
}

// releaseHost takes the image off the host of a Metal3Machine that is deleted, and lets the host go when it is clean (METAL3 M3-50).
func (w *world) releaseHost(m *unstructured.Unstructured) {
	h := w.hostOf(m)
	switch {
	case h == nil:
		change(w, m, func(m *unstructured.Unstructured) { m.SetFinalizers(nil) })
	case h.Spec.Image != nil || h.Spec.Online:
		change(w, h, func(h *bmov1alpha1.BareMetalHost) { h.Spec.Image, h.Spec.UserData, h.Spec.Online = nil, nil, false })
	case h.Status.Provisioning.State == bmov1alpha1.StateAvailable:
		change(w, h, func(h *bmov1alpha1.BareMetalHost) { h.Spec.ConsumerRef = nil })
	}
}

// operateHost is baremetal-operator's, for one host.
func (w *world) operateHost(h *bmov1alpha1.BareMetalHost) {
	state := func(to bmov1alpha1.ProvisioningState, more func(*bmov1alpha1.BareMetalHostStatus)) {
		tell(w, h, func(h *bmov1alpha1.BareMetalHost) {
			h.Status.Provisioning.State = to
			more(&h.Status)
		})
	}
	switch h.Status.Provisioning.State {
	case bmov1alpha1.StateAvailable:
		if h.Spec.Image != nil {
			state(bmov1alpha1.StateProvisioning, func(s *bmov1alpha1.BareMetalHostStatus) {
				s.OperationHistory.Provision = bmov1alpha1.OperationMetric{Start: metav1.NewTime(w.now)}
			})
		}
	case bmov1alpha1.StateProvisioning:
		switch {
		case h.Spec.Image == nil:
			state(bmov1alpha1.StateDeprovisioning, func(*bmov1alpha1.BareMetalHostStatus) {})
		case w.boot(h):
			state(bmov1alpha1.StateProvisioned, func(s *bmov1alpha1.BareMetalHostStatus) {
				s.OperationHistory.Provision.End, s.PoweredOn = metav1.NewTime(w.now), true
			})
		}
	case bmov1alpha1.StateProvisioned:
		if h.Spec.Image == nil {
			w.off(h)
			state(bmov1alpha1.StateDeprovisioning, func(s *bmov1alpha1.BareMetalHostStatus) { s.PoweredOn = false })
			return
		}
		if _, asked := h.Annotations[rebootAnnotation]; asked {
			w.boot(h)
			change(w, h, func(h *bmov1alpha1.BareMetalHost) { delete(h.Annotations, rebootAnnotation) })
		}
	case bmov1alpha1.StateDeprovisioning:
		state(bmov1alpha1.StateAvailable, func(*bmov1alpha1.BareMetalHostStatus) {})
	}
}

func (w *world) off(h *bmov1alpha1.BareMetalHost) {
	s := w.servers[h.Name]
	s.infraEnv, s.node, s.labels = "", "", nil
}

// boot boots a server from its image, and reports whether it could: a disk image needs its user data, a live ISO none (METAL3 M3-5, M3-6).
func (w *world) boot(h *bmov1alpha1.BareMetalHost) bool {
	url, s := h.Spec.Image.URL, w.servers[h.Name]
	if *h.Spec.Image.DiskFormat != "live-iso" {
		data, ok := w.secretValue(h.Spec.UserData.Name, "value")
		if !ok {
			return false
		}
		url = strings.TrimPrefix(data, "ignition of ")
	}
	w.off(h)
	s.boots, s.booted, s.frozen = s.boots+1, w.now, false
	if strings.HasPrefix(url, imagesOfHosts) { // What boots another image never registers.
		s.infraEnv = url[strings.LastIndex(url, "/")+1:]
	}
	return true
}
