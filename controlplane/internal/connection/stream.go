// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// largestEvent is how many bytes an event of a watch may have; as many as client-go reads.
const largestEvent = 16 << 20

var errLargeEvent = errors.New("an event is too large")

// stream reads the events of a watch. client-go's reader keeps two buffers as large as the largest event was for as long as the watch is
// open; this one keeps none, because it mostly waits.
type stream struct {
	close   func() error
	body    io.LimitedReader
	decoder runtime.Decoder
	// first is the byte that was waited for.
	first [1]byte
	// frames is nil when all that was read has been used.
	frames *json.Decoder
}

func newStream(body io.ReadCloser, decoder runtime.Decoder) *stream {
	return &stream{close: body.Close, body: io.LimitedReader{R: body}, decoder: decoder}
}

// wait returns when an event begins. It holds no decoder, and calls few functions: Go halves the stack of a goroutine that waits on less
// than a quarter of it, and there are thousands that wait here.
func (s *stream) wait() error {
	if s.frames != nil {
		return nil
	}
	for {
		n, err := s.body.R.Read(s.first[:])
		if n > 0 && s.first[0] != '\n' { // Events end with one, which may come late.
			s.frames = json.NewDecoder(io.MultiReader(bytes.NewReader(s.first[:]), &s.body))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// next decodes the event that has begun.
func (s *stream) next() (watch.EventType, runtime.Object, error) {
	s.body.N = largestEvent
	var event metav1.WatchEvent
	err := s.frames.Decode(&event)
	if err != nil && s.body.N <= 0 {
		return "", nil, errLargeEvent
	}
	if err != nil {
		return "", nil, err
	}
	more, err := io.ReadAll(s.frames.Buffered())
	if err != nil {
		return "", nil, fmt.Errorf("read what has come already: %w", err)
	}
	if len(bytes.TrimSpace(more)) == 0 {
		s.frames = nil
	}
	if err := limits.Counter().Count(event.Object.Raw); err != nil {
		return "", nil, fmt.Errorf("an event is too large: %w", err)
	}
	o, err := runtime.Decode(s.decoder, event.Object.Raw)
	if err != nil {
		return "", nil, fmt.Errorf("decode an event %s: %w", event.Type, err)
	}
	return watch.EventType(event.Type), o, nil
}
