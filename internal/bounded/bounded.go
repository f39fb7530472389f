// SPDX-License-Identifier: Apache-2.0

// Package bounded keeps texts as short as API servers take them: a condition or an event that is too long is refused as a whole, and takes
// the rest of a status with it. Every condition and every event of the managers goes through here.
package bounded

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"sigs.k8s.io/cluster-api/util/conditions"
)

const (
	// maxCondition is the size of the longest message of a condition. API servers take 32,768 bytes; summaries put the messages of several
	// conditions together.
	maxCondition = 4 << 10
	// maxEvent is the size of the longest event that API servers take.
	maxEvent = 1 << 10

	// ellipsis ends a message that was cut.
	ellipsis = "…"
)

// SetCondition sets a condition of an object, with its message cut to what fits.
func SetCondition(o conditions.Setter, condition metav1.Condition) {
	condition.Message = Message(condition.Message)
	conditions.Set(o, condition)
}

// Message is what SetCondition makes of a condition's message.
func Message(text string) string { return cut(text, maxCondition) }

// Recorder records events, each cut to what fits.
type Recorder struct{ events.EventRecorder }

// Eventf records an event.
func (r Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", cut(fmt.Sprintf(note, args...), maxEvent))
}

// cut shortens a text to so many bytes. It does not cut a character in two: API servers refuse what is no UTF-8.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
