// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capi-openshift/agent-providers/internal/fair"
	"github.com/capi-openshift/agent-providers/internal/tracing"
	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
)

var (
	controlPlane = types.NamespacedName{Namespace: "ns", Name: "cp"}
	request      = Request{Image: "registry.example.com/ocp/release:4.20.4", PullSecret: "pull", TrustBundle: "pem"}
	secret       = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"}, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
	}
)

// fakeRegistry answers what it is told, once for every call, and when may is not nil, once it is told that it may.
type fakeRegistry struct {
	may chan struct{}

	mu      sync.Mutex
	answers []Answer
	asked   []Access
}

func (f *fakeRegistry) Fetch(ctx context.Context, _ string, access Access) (Release, error) {
	if f.may != nil {
		select {
		case <-f.may:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, access)
	next := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	if next.Err != nil {
		return Release{}, next.Err
	}
	return *next.Release, nil
}

func (f *fakeRegistry) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

func init() { SetDefaultEventuallyTimeout(time.Minute) }

func start(t *testing.T, registry Fetcher, objects ...client.Object) *Resolver {
	t.Helper()
	r := NewResolver(fakeClient().WithObjects(objects...).Build(), registry)
	r.queue = fair.NewNamedQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Millisecond, 10*time.Millisecond), workers)
	run(t, r)
	return r
}

func run(t *testing.T, r *Resolver) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		NewWithT(t).Expect(<-done).To(Succeed())
	})
}

func TestResolver(t *testing.T) {
	found := &Release{Digest: "sha256:1", Version: version, KubernetesVersion: kubernetesVersion}
	t.Run("answers once it knows", func(t *testing.T) {
		g := NewWithT(t)
		registry := &fakeRegistry{answers: []Answer{{Release: found}}}
		r := start(t, registry, secret)
		g.Expect(r.Lookup(t.Context(), controlPlane, request)).To(Equal(Answer{}))
		g.Eventually(r.Events()).Should(Receive(WithTransform(key, Equal(controlPlane))))
		g.Expect(r.Lookup(t.Context(), controlPlane, request)).To(Equal(Answer{Release: found}))
		g.Expect(registry.asked).To(Equal([]Access{{PullSecret: []byte("{}"), TrustBundle: "pem", Management: MirrorsOf(nil, nil)}}))
	})
	t.Run("tries again, and tells only what is new", func(t *testing.T) {
		g := NewWithT(t)
		registry := &fakeRegistry{may: make(chan struct{}, 2), answers: []Answer{
			{Err: fmt.Errorf("%w: port 1", ErrTimeout)}, {Err: fmt.Errorf("%w: port 2", ErrTimeout)}, {Err: ErrUnauthorized}, {Release: found},
		}}
		r := start(t, registry, secret)
		r.Lookup(t.Context(), controlPlane, request)
		registry.may <- struct{}{}
		g.Eventually(r.Events()).Should(Receive())
		g.Expect(r.Lookup(t.Context(), controlPlane, request).Err).To(MatchError(ErrTimeout))
		registry.may <- struct{}{} // The same again is not told.
		registry.may <- struct{}{}
		g.Eventually(r.Events()).Should(Receive())
		g.Expect(r.Lookup(t.Context(), controlPlane, request).Err).To(MatchError(ErrUnauthorized))
		registry.may <- struct{}{}
		g.Eventually(r.Events()).Should(Receive())
		g.Expect(r.Lookup(t.Context(), controlPlane, request)).To(Equal(Answer{Release: found}))
		g.Expect(registry.calls()).To(Equal(4))
	})
	t.Run("asks anew for another image", func(t *testing.T) {
		g := NewWithT(t)
		other := request
		other.Image = "registry.example.com/ocp/release:4.20.5"
		r := start(t, &fakeRegistry{answers: []Answer{{Release: found}}}, secret)
		r.Lookup(t.Context(), controlPlane, request)
		g.Eventually(r.Events()).Should(Receive())
		g.Expect(r.Lookup(t.Context(), controlPlane, other)).To(Equal(Answer{}))
		g.Eventually(r.Events()).Should(Receive())
		g.Expect(r.Lookup(t.Context(), controlPlane, other).Release).To(Equal(found))
	})
	t.Run("forgets", func(t *testing.T) {
		g := NewWithT(t)
		registry := &fakeRegistry{answers: []Answer{{Err: ErrTimeout}}}
		r := start(t, registry, secret)
		r.Lookup(t.Context(), controlPlane, request)
		g.Eventually(r.Events()).Should(Receive())
		r.Forget(controlPlane)
		g.Expect(r.known).To(BeEmpty())
		calls := registry.calls()
		g.Consistently(registry.calls, "50ms").Should(BeNumerically("<=", calls+1))
	})
	t.Run("reads the trust bundle of a ConfigMap", func(t *testing.T) {
		g := NewWithT(t)
		byName := Request{Image: request.Image, PullSecret: "pull", TrustBundleRef: "ca"}
		bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ca"}}
		ask := func(data map[string]string) (Answer, []Access) {
			bundle.Data = data
			registry := &fakeRegistry{answers: []Answer{{Release: found}}}
			r := start(t, registry, secret, bundle)
			r.Lookup(t.Context(), controlPlane, byName)
			g.Eventually(r.Events()).Should(Receive())
			return r.Lookup(t.Context(), controlPlane, byName), registry.asked
		}
		answer, asked := ask(map[string]string{"ca-bundle.crt": "pem"})
		g.Expect(answer.Release).To(Equal(found))
		g.Expect(asked).To(Equal([]Access{{PullSecret: []byte("{}"), TrustBundle: "pem", Management: MirrorsOf(nil, nil)}}))
		answer, asked = ask(map[string]string{"ca.crt": "pem"})
		g.Expect(answer.Err).To(And(MatchError(ErrTrustBundle), MatchError(ContainSubstring("ConfigMap ca has no key ca-bundle.crt"))))
		g.Expect(asked).To(BeEmpty())
		byName.TrustBundleRef = "other"
		answer, _ = ask(nil)
		g.Expect(answer.Err).To(And(MatchError(ErrTrustBundle), MatchError(ContainSubstring("ConfigMap other does not exist"))))
	})
	t.Run("says that there is no pull secret", func(t *testing.T) {
		g := NewWithT(t)
		r := start(t, &fakeRegistry{})
		r.Lookup(t.Context(), controlPlane, request)
		g.Eventually(r.Events()).Should(Receive())
		g.Expect(r.Lookup(t.Context(), controlPlane, request).Err).
			To(And(MatchError(ErrPullSecret), MatchError(ContainSubstring("Secret pull does not exist"))))
	})
}

func key(e event.GenericEvent) types.NamespacedName { return client.ObjectKeyFromObject(e.Object) }

// hangingRegistry never answers for an image of hangs.example.org.
type hangingRegistry struct{ found Release }

func (h hangingRegistry) Fetch(ctx context.Context, image string, _ Access) (Release, error) {
	if strings.HasPrefix(image, "hangs.example.org/") {
		<-ctx.Done()
		return Release{}, ctx.Err()
	}
	return h.found, nil
}

// TestDeadRegistriesOfOneNamespaceHoldUpNobodyElse: a control plane of another namespace gets its answer while those registries are waited
// for.
func TestDeadRegistriesOfOneNamespaceHoldUpNobodyElse(t *testing.T) {
	g := NewWithT(t)
	found := Release{Digest: "sha256:1", Version: version, KubernetesVersion: kubernetesVersion}
	bad := secret.DeepCopy()
	bad.Namespace = "bad"
	r := NewResolver(fakeClient().WithObjects(secret, bad).Build(), hangingRegistry{found})
	run(t, r)
	for i := range 10 * workers {
		bad := types.NamespacedName{Namespace: "bad", Name: fmt.Sprint(i)}
		r.Lookup(t.Context(), bad, Request{Image: "hangs.example.org/ocp:4.20.4", PullSecret: "pull"})
	}
	r.Lookup(t.Context(), controlPlane, request)
	g.Eventually(r.Events()).Should(Receive(WithTransform(key, Equal(controlPlane))))
	g.Expect(r.Lookup(t.Context(), controlPlane, request)).To(Equal(Answer{Release: &found}))
}

// TestTrace: what the pass that has asked waits for is shown below it, though it is done beside it, and later again.
func TestTrace(t *testing.T) {
	g, spans, h := NewWithT(t), tracingtest.New(), newHub(t)
	h.push("4.20.4", releaseImage(t))
	registry := NewRegistry("test")
	r := start(t, trusting{registry, h.access()}, secret)
	pass, wanted := spans.Pass(t), request
	wanted.Image = h.image("missing")
	r.Lookup(pass, controlPlane, wanted)
	g.Eventually(r.Events()).Should(Receive())
	trace.SpanFromContext(pass).End()
	h.push("missing", releaseImage(t))
	g.Eventually(r.Events()).Should(Receive())

	tries := spans.Below(pass, "resolve release image")
	g.Expect(len(tries)).To(BeNumerically(">=", 2))
	failed, found := tries[0], tries[len(tries)-1]
	g.Expect(failed.Status.Code).To(Equal(codes.Error))
	g.Expect(failed.Status.Description).To(ContainSubstring(ErrNotFound.Error()))
	g.Expect(found.Status.Code).To(Equal(codes.Unset))
	g.Expect(tracingtest.Value(found, tracing.ImageAttribute)).To(Equal(wanted.Image))
	asked := spans.Below(trace.ContextWithSpanContext(t.Context(), found.SpanContext), "registry")
	g.Expect(len(asked)).To(BeNumerically(">=", 3), "the way to log in, the manifest and layers")
	for _, one := range asked {
		g.Expect(tracingtest.Value(one, "http.response.status_code")).To(HavePrefix("2"))
		g.Expect(tracingtest.Value(one, "url.path")).To(BeEmpty(), "registries redirect to addresses that are credentials")
	}
}

// trusting asks with the access of a test.
type trusting struct {
	registry *Registry
	access   Access
}

func (t trusting) Fetch(ctx context.Context, image string, _ Access) (Release, error) {
	return t.registry.Fetch(ctx, image, t.access)
}
