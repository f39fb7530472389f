// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
)

// hanging is the URL of a server that never answers.
const hanging = "https://hangs.example.org/"

// played serves what it is given, one answer for each fetch, and hangs where it has to.
type played struct {
	answers chan error
	asked   chan string
}

func (p played) Fetch(ctx context.Context, url string) ([]byte, error) {
	p.asked <- url
	if strings.HasPrefix(url, hanging) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case err := <-p.answers:
		return []byte(url), err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func startFetches(t *testing.T) (*Fetches, played, *clocktesting.FakeClock) {
	t.Helper()
	source, now := played{answers: make(chan error, 1000), asked: make(chan string, 1000)}, clocktesting.NewFakeClock(time.Now())
	f := NewFetches(source)
	f.clock, f.patience = now, 0
	run(t, f)
	return f, source, now
}

func run(t *testing.T, f *Fetches) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		NewWithT(t).Expect(<-done).To(Succeed())
	})
}

func named(namespace string, i int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("worker-%04d", i)}
}

func about(config types.NamespacedName) any {
	return WithTransform(func(e event.GenericEvent) types.NamespacedName { return client.ObjectKeyFromObject(e.Object) }, Equal(config))
}

func TestFetchedBesideThePass(t *testing.T) {
	g := NewWithT(t)
	f, source, now := startFetches(t)
	config, down := named("good", 1), &Error{Message: "the server does not answer"}
	lookup := func() (string, error) {
		data, err := f.Lookup(t.Context(), config, "https://good")
		return string(data), err
	}
	pending := func() {
		_, err := lookup()
		g.Expect(err).To(MatchError(ErrPending))
	}
	pending()
	pending()
	source.answers <- down
	g.Eventually(f.Events(), time.Minute).Should(Receive(about(config)))
	for range 3 { // It is not asked again at once.
		_, err := lookup()
		g.Expect(err).To(Equal(down))
	}
	g.Expect(source.asked).To(HaveLen(1))
	g.Expect(ended(f)).To(Equal(1))

	now.Step(retry)
	_, err := lookup() // What is known is said until there is another answer, and the same again is no news.
	g.Expect(err).To(Equal(down))
	source.answers <- down
	g.Eventually(func() int { return ended(f) }, time.Minute).Should(Equal(1))
	g.Expect(source.asked).To(HaveLen(2))

	now.Step(retry)
	_, err = lookup()
	g.Expect(err).To(Equal(down))
	source.answers <- nil
	g.Eventually(f.Events(), time.Minute).Should(Receive(about(config)))
	g.Expect(lookup()).To(Equal("https://good"))
	g.Expect(f.known).To(BeEmpty(), "what was asked for is not remembered")

	pending()
	f.Forget(config)
	g.Expect(f.known).To(BeEmpty())
	g.Expect(f.unfinished).To(BeEmpty())
}

// ended is how many fetches have come to their end and are remembered.
func ended(f *Fetches) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := 0
	for _, one := range f.known {
		if one.finished() {
			count++
		}
	}
	return count
}

// TestAnotherURLIsFetchedAtOnce: assisted-service has another token in it, or another image.
func TestAnotherURLIsFetchedAtOnce(t *testing.T) {
	g := NewWithT(t)
	f, source, _ := startFetches(t)
	config := named("good", 1)
	_, err := f.Lookup(t.Context(), config, "https://good/1")
	g.Expect(err).To(MatchError(ErrPending))
	source.answers <- &Error{Message: "HTTP 404"}
	g.Eventually(f.Events(), time.Minute).Should(Receive())
	_, err = f.Lookup(t.Context(), config, "https://good/2")
	g.Expect(err).To(MatchError(ErrPending))
	source.answers <- nil
	g.Eventually(f.Events(), time.Minute).Should(Receive())
	g.Expect(f.Lookup(t.Context(), config, "https://good/2")).To(Equal([]byte("https://good/2")))
}

// TestServersThatHangHoldUpNobodyElse: with a thousand configs of one namespace whose server never answers, no pass but the first few has
// waited, and a config of another namespace gets its ignition while they are waited for.
func TestServersThatHangHoldUpNobodyElse(t *testing.T) {
	g := NewWithT(t)
	f, source, _ := startFetches(t)
	waited := 0
	for i := range 1000 {
		current, waits := f.begin(t.Context(), named("bad", i), hanging)
		if waits {
			waited++
		}
		g.Expect(current.finished()).To(BeFalse())
	}
	g.Expect(waited).To(Equal(places))
	_, err := f.Lookup(t.Context(), named("good", 1), "https://good")
	g.Expect(err).To(MatchError(ErrPending))
	source.answers <- nil
	g.Eventually(f.Events(), time.Minute).Should(Receive(about(named("good", 1))))
	g.Expect(len(source.asked)).To(BeNumerically("<=", places+1), "the others wait for their places")
}

// TestPassWaitsForServerThatAnswers: the pass goes on with what was served, and is not woken for it.
func TestPassWaitsForServerThatAnswers(t *testing.T) {
	g := NewWithT(t)
	source := played{answers: make(chan error, 1), asked: make(chan string, 1)}
	f := NewFetches(source)
	f.patience = time.Hour
	run(t, f)
	source.answers <- nil
	g.Expect(f.Lookup(t.Context(), named("good", 1), "https://good")).To(Equal([]byte("https://good")))
	g.Consistently(f.Events(), "50ms").ShouldNot(Receive())
}

// TestMemoryOfWhatNobodyAsksForIsBounded: each may have a MiB.
func TestMemoryOfWhatNobodyAsksForIsBounded(t *testing.T) {
	g := NewWithT(t)
	f, source, _ := startFetches(t)
	const many = 3 * kept
	for i := range many {
		_, err := f.Lookup(t.Context(), named("bad", i), "https://good")
		g.Expect(err).To(MatchError(ErrPending))
		source.answers <- nil
		g.Eventually(f.Events(), time.Minute).Should(Receive())
	}
	g.Expect(f.known).To(HaveLen(kept))
	g.Expect(f.served).To(HaveLen(kept))
	g.Expect(f.unfinished).To(BeEmpty())
}

// TestTrace: a fetch is shown below the pass that has asked for it, though the pass has ended before. The URL, which has a token, is not.
func TestTrace(t *testing.T) {
	g, spans := NewWithT(t), tracingtest.New()
	f, source, _ := startFetches(t)
	pass := spans.Pass(t)
	_, err := f.Lookup(pass, named("good", 1), "https://good/byapikey/secret")
	g.Expect(err).To(MatchError(ErrPending))
	trace.SpanFromContext(pass).End()
	source.answers <- &Error{Message: "it is down", cause: errors.New("Get https://good/byapikey/secret: EOF")}
	g.Eventually(f.Events(), time.Minute).Should(Receive())
	fetched := spans.Below(pass, "fetch discovery ignition")
	g.Expect(fetched).To(HaveLen(1))
	g.Expect(fetched[0].Status).To(And(
		HaveField("Code", codes.Error), HaveField("Description", "it is down: Get https://good/[redacted] EOF")))
}
