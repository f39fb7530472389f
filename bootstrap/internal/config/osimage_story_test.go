// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// hub is a management cluster with one cluster and an assisted-service.
type hub struct {
	*WithT
	t        *testing.T
	client   client.Client
	recorder *events.FakeRecorder
	r        *Reconciler
	cluster  *clusterv1.Cluster

	// images are those of the service, which has made these InfraEnvs' images.
	images []string
	made   map[string]string
	// reads are the requests to the API server, and refuse is how it answers them.
	reads  []string
	refuse error
	writes int
}

// newHub is a hub whose cluster is being installed, and whose service has images that its AgentServiceConfig lists.
func newHub(t *testing.T, images ...string) *hub {
	t.Helper()
	h := &hub{WithT: NewWithT(t), t: t, images: images, made: map[string]string{}, recorder: events.NewFakeRecorder(20)}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, assisted.AddToScheme,
	} {
		h.Expect(add(scheme)).To(Succeed())
	}
	h.cluster = demoCluster()
	h.cluster.Namespace, h.cluster.Status.Initialization.InfrastructureProvisioned = "ns", ptr.To(true)
	h.cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: controlPlaneKind.Group, Kind: controlPlaneKind.Kind, Name: "demo-control-plane",
	}
	controlPlane := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
	controlPlane.SetGroupVersionKind(controlPlaneKind)
	controlPlane.SetNamespace("ns")
	controlPlane.SetName("demo-control-plane")
	service := &assisted.AgentServiceConfig{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
	service.Spec.OSImages = listed("x86_64", images...)
	write := func() { h.writes++ }
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(h.cluster, controlPlane, service).
		WithStatusSubresource(&bootstrapv1.OpenshiftAssistedConfig{}, &assisted.InfraEnv{}).
		WithInterceptorFuncs(countWrites(write)).Build()
	live := interceptor.NewClient(h.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			h.reads = append(h.reads, fmt.Sprintf("%T %s", o, key.Name))
			if h.refuse != nil {
				return h.refuse
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	h.r = &Reconciler{
		Client: h.client, APIReader: live, Recorder: h.recorder, controller: capicontrollerutil.NewFakeController(),
		secrets: newSecrets(nil, clock.RealClock{}),
	}
	return h
}

func countWrites(write func()) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			write()
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			write()
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			write()
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// runs brings the cluster to a release.
func (h *hub) runs(release string) {
	h.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	controlPlane := &unstructured.Unstructured{}
	controlPlane.SetGroupVersionKind(controlPlaneKind)
	h.Expect(h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo-control-plane"}, controlPlane)).To(Succeed())
	h.Expect(unstructured.SetNestedField(controlPlane.Object, release, "status", "distributionVersion")).To(Succeed())
	h.Expect(h.client.Update(h.t.Context(), controlPlane)).To(Succeed())
}

// offers changes the images that the service has.
func (h *hub) offers(images ...string) {
	h.images = images
	service := &assisted.AgentServiceConfig{}
	h.Expect(h.client.Get(h.t.Context(), client.ObjectKey{Name: "agent"}, service)).To(Succeed())
	service.Spec.OSImages = listed("x86_64", images...)
	h.Expect(h.client.Update(h.t.Context(), service)).To(Succeed())
}

// machine makes a Machine and its config, and returns the config once its InfraEnv has an image.
func (h *hub) machine(name string) *bootstrapv1.OpenshiftAssistedConfig {
	config := named(name, bootstrapv1.OpenshiftAssistedConfigSpec{PullSecretRef: bootstrapv1.LocalSecretReference{Name: "pull-secret"}})
	config.Namespace, config.UID = "ns", types.UID(name)
	h.Expect(h.client.Create(h.t.Context(), config)).To(Succeed())
	for range 4 {
		h.pass(name)
		h.serve()
	}
	return h.config(name)
}

func (h *hub) config(name string) *bootstrapv1.OpenshiftAssistedConfig {
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	h.Expect(h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, config)).To(Succeed())
	return config
}

// pass is a pass of a config, but for its hosts and Secrets.
func (h *hub) pass(name string) {
	s := prepared()
	s.config, s.cluster, s.infraEnv, s.infraEnvName, s.infraMachine = h.config(name), h.cluster, nil, "", nil
	s.machine.Name, s.inputs = name, inputs{pullSecret: s.config.Spec.PullSecretRef.Name}
	s.read, s.first = s.config.DeepCopy(), s.config.DeepCopy()
	h.Expect(h.r.observeInfraEnv(h.t.Context(), s)).To(Succeed())
	d := decide(s)
	o := h.r.apply(h.t.Context(), s, d)
	h.Expect(o.err()).NotTo(HaveOccurred())
	came := result{decision: &d, outcomes: o}
	setStatus(s, came)
	h.Expect(h.r.patchConfig(h.t.Context(), s, came)).To(Succeed())
}

// serve makes the images of new InfraEnvs: the version that is asked for if the service has it, else its newest one.
func (h *hub) serve() {
	list := &assisted.InfraEnvList{}
	h.Expect(h.client.List(h.t.Context(), list)).To(Succeed())
	for i := range list.Items {
		infraEnv := &list.Items[i]
		if h.made[infraEnv.Name] != "" {
			continue
		}
		version := infraEnv.Spec.OSImageVersion
		if version == "" {
			version = slices.Max(h.images)
		}
		h.Expect(h.images).To(ContainElement(version), "the service refuses an image that it does not have")
		h.made[infraEnv.Name] = version
		infraEnv.Status.ISODownloadURL = "http://images.example.com/byid/1/" + version + "/x86_64/minimal.iso"
		infraEnv.Status.Conditions = []assisted.Condition{{Type: assisted.ConditionImageCreated, Status: corev1.ConditionTrue}}
		h.Expect(h.client.Status().Update(h.t.Context(), infraEnv)).To(Succeed())
	}
}

// boots is the version that the host of a config boots.
func (h *hub) boots(config *bootstrapv1.OpenshiftAssistedConfig) string {
	return h.made[config.Annotations[bootstrapv1.InfraEnvAnnotation]]
}

// told are the events about images of other releases.
func (h *hub) told() []string {
	var notes []string
	for len(h.recorder.Events) > 0 {
		if note := <-h.recorder.Events; strings.Contains(note, bootstrapv1.EventOSImageOfOtherRelease) {
			notes = append(notes, note)
		}
	}
	return notes
}

// TestOSImageFollowsUpgrade: hosts of day 1 boot the service's default, and so do later ones until the cluster is upgraded. From then on
// new hosts boot the image of the new release, from an InfraEnv of their own, and nothing changes for those that are there.
func TestOSImageFollowsUpgrade(t *testing.T) {
	h := newHub(t, "4.20")
	first := h.machine("m-0")
	h.Expect(h.boots(first)).To(Equal("4.20"))
	h.Expect(h.reads).To(BeEmpty(), "there is no release to ask for before the cluster is installed")

	h.runs("4.20.4")
	second := h.machine("m-1")
	h.Expect(second.Annotations).To(Equal(first.Annotations), "an installed cluster gets no second InfraEnv")

	h.offers("4.20", "4.21")
	h.Expect(h.machine("m-2").Annotations).To(Equal(first.Annotations), "a newer image alone changes nothing")

	h.runs("4.21.3")
	third := h.machine("m-3")
	h.Expect(h.boots(third)).To(Equal("4.21"))
	h.Expect(third.Annotations).To(HaveKeyWithValue(bootstrapv1.OSImageVersionAnnotation, "4.21"))
	infraEnv := &assisted.InfraEnv{}
	key := client.ObjectKey{Namespace: "ns", Name: third.Annotations[bootstrapv1.InfraEnvAnnotation]}
	h.Expect(h.client.Get(h.t.Context(), key, infraEnv)).To(Succeed())
	h.Expect(infraEnv.Spec.OSImageVersion).To(Equal("4.21"))
	h.Expect(h.machine("m-4").Annotations).To(Equal(third.Annotations), "later hosts share it")
	h.Expect(h.told()).To(BeEmpty())

	h.reads, h.writes = nil, 0
	for _, name := range []string{"m-0", "m-1", "m-2", "m-3", "m-4"} {
		h.pass(name)
	}
	h.Expect(h.reads).To(BeEmpty(), "what is recorded is not chosen again")
	h.Expect(h.writes).To(BeZero())
	h.Expect(h.config("m-0").Annotations).To(Equal(first.Annotations))

	h.Expect(h.client.Delete(h.t.Context(), infraEnv)).To(Succeed())
	delete(h.made, infraEnv.Name)
	h.runs("4.22.0")
	for range 2 {
		h.pass("m-3")
		h.serve()
	}
	h.Expect(h.boots(third)).To(Equal("4.21"), "an InfraEnv that is made anew is the recorded one")
}

// TestOSImageIsOlder: a service without an image of the release has hosts boot the newest older one, and they say so.
func TestOSImageIsOlder(t *testing.T) {
	note := "Normal OSImageOfOtherRelease The cluster runs 4.21.3, and assisted-service has no OS image of 4.21 for x86_64: the host boots " +
		"that of 4.20, and its first boot from disk brings it to the cluster's; add one to the AgentServiceConfig"
	h := newHub(t, "4.19", "4.20", "4.22")
	first := h.machine("m-0")
	h.Expect(h.boots(first)).To(Equal("4.22"), "the service's default")
	h.runs("4.21.3")
	second := h.machine("m-1")
	h.Expect(h.boots(second)).To(Equal("4.20"))
	h.Expect(second.Annotations).To(HaveKeyWithValue(bootstrapv1.OSImageVersionAnnotation, "4.20"))
	h.Expect(h.told()).To(Equal([]string{note}))

	h = newHub(t, "4.20")
	first = h.machine("m-0")
	h.runs("4.21.3")
	second = h.machine("m-1")
	h.Expect(second.Annotations).To(Equal(first.Annotations), "the InfraEnv of day 1 has that image")
	h.Expect(h.told()).To(Equal([]string{note}))
}

// TestOSImageIsNotKnown: where nobody tells the release or the images, hosts boot the service's default, as on day 1.
func TestOSImageIsNotKnown(t *testing.T) {
	controlPlanes := schema.GroupResource{Group: controlPlaneKind.Group, Resource: "openshiftassistedcontrolplanes"}
	for name, change := range map[string]func(*hub){
		"a control plane of others":    func(h *hub) { h.cluster.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane" },
		"no control plane":             func(h *hub) { h.cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{} },
		"a control plane that is gone": func(h *hub) { h.cluster.Spec.ControlPlaneRef.Name = "gone" },
		"no release yet":               func(h *hub) { h.runs("") },
		"no AgentServiceConfig": func(h *hub) {
			h.Expect(h.client.Delete(h.t.Context(), &assisted.AgentServiceConfig{ObjectMeta: metav1.ObjectMeta{Name: "agent"}})).To(Succeed())
		},
		"images of the operator's own": func(h *hub) { h.offers(); h.images = []string{"4.20"} },
		"the manager's role lacks it":  func(h *hub) { h.refuse = apierrors.NewForbidden(controlPlanes, "demo-control-plane", nil) },
		"the kind is not served": func(h *hub) {
			h.refuse = &meta.NoKindMatchError{GroupKind: controlPlaneKind.GroupKind(), SearchedVersions: []string{controlPlaneKind.Version}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, "4.20")
			first := h.machine("m-0")
			h.runs("4.21.3")
			change(h)
			h.Expect(h.machine("m-1").Annotations).To(Equal(first.Annotations))
			h.Expect(h.told()).To(BeEmpty())
		})
	}
	h := newHub(t, "4.20")
	h.runs("4.20.1")
	h.refuse = apierrors.NewInternalError(context.DeadlineExceeded)
	s := prepared()
	s.config.Annotations, s.cluster = nil, h.cluster
	h.Expect(h.r.observeInfraEnv(h.t.Context(), s)).NotTo(Succeed(), "a server that does not answer is asked again")
}
