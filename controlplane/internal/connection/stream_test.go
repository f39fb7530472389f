// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endless says the same again and again, and counts it.
type endless struct {
	says string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	for n := 0; n < len(p); {
		n += copy(p[n:], e.says)
	}
	return len(p), nil
}

func eventOf(kind, name string) string {
	return `{"type":"` + kind + `","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}}`
}

func read(s *stream) (watch.EventType, runtime.Object, error) {
	if err := s.wait(); err != nil {
		return "", nil, err
	}
	return s.next()
}

// TestStream: events are read one by one however they arrive, and while nothing more has come, no buffer is kept.
func TestStream(t *testing.T) {
	g := NewWithT(t)
	body, server := io.Pipe()
	three := eventOf("DELETED", "three")
	large := strings.Repeat("a", 1<<20)
	go func() {
		for _, part := range []string{
			eventOf("ADDED", "one") + "\n" + eventOf("MODIFIED", "two") + "\n" + three[:20], three[20:], "\n",
			eventOf("BOOKMARK", large) + "\n", "{}",
		} {
			_, _ = server.Write([]byte(part))
		}
		_ = server.Close()
	}()
	s := newStream(body, clientgoscheme.Codecs.UniversalDeserializer())
	for _, want := range []struct {
		event watch.EventType
		name  string
		kept  bool
	}{{watch.Added, "one", true}, {watch.Modified, "two", true}, {watch.Deleted, "three", false}, {watch.Bookmark, large, false}} {
		kind, o, err := read(s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kind).To(Equal(want.event))
		g.Expect(o.(client.Object).GetName()).To(Equal(want.name))
		g.Expect(o).To(BeAssignableToTypeOf(&corev1.ConfigMap{}))
		g.Expect(s.frames != nil).To(Equal(want.kept), string(want.event))
	}
	_, _, err := read(s)
	g.Expect(err).To(MatchError(ContainSubstring("decode an event")))
	_, _, err = read(s)
	g.Expect(err).To(MatchError(io.EOF))
}

// TestStreamWithoutEnd: an event that does not end is given up when it is larger than events may be.
func TestStreamWithoutEnd(t *testing.T) {
	g := NewWithT(t)
	body := &endless{says: " "}
	begun := strings.NewReader(`{"type":"ADDED","object":{"data":"`)
	s := newStream(io.NopCloser(io.MultiReader(begun, body)), clientgoscheme.Codecs.UniversalDeserializer())
	_, _, err := read(s)
	g.Expect(err).To(MatchError(errLargeEvent))
	g.Expect(body.read).To(BeNumerically("<=", 2*largestEvent))
}

// TestStreamAtRest: the end of a line begins no event, so that no decoder is kept after it.
func TestStreamAtRest(t *testing.T) {
	g := NewWithT(t)
	s := newStream(io.NopCloser(strings.NewReader("\n")), clientgoscheme.Codecs.UniversalDeserializer())
	g.Expect(s.wait()).To(MatchError(io.EOF))
	g.Expect(s.frames).To(BeNil())
}

// TestEventOfManyValues: an event with more values than an answer may have is not decoded.
func TestEventOfManyValues(t *testing.T) {
	g := NewWithT(t)
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"ownerReferences":[` + strings.Repeat("{},", 300_000) + `{}]}}`
	body := io.NopCloser(strings.NewReader(`{"type":"ADDED","object":` + object + "}\n"))
	_, _, err := read(newStream(body, clientgoscheme.Codecs.UniversalDeserializer()))
	g.Expect(err).To(MatchError("an event is too large: it has more than 250000 values"))
}
