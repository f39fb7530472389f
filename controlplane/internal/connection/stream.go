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
	body    io.LimitedReader
	decoder runtime.Decoder
	// frames is nil when all that was read has been used.
	frames *json.Decoder
}

func newStream(body io.Reader, decoder runtime.Decoder) *stream {
	return &stream{body: io.LimitedReader{R: body}, decoder: decoder}
}

// next waits for the next event.
func (s *stream) next() (watch.EventType, runtime.Object, error) {
	s.body.N = largestEvent
	if s.frames == nil {
		s.frames = json.NewDecoder(&s.body)
	}
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
	o, err := runtime.Decode(s.decoder, event.Object.Raw)
	if err != nil {
		return "", nil, fmt.Errorf("decode an event %s: %w", event.Type, err)
	}
	return watch.EventType(event.Type), o, nil
}
