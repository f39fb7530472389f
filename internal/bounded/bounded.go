// SPDX-License-Identifier: Apache-2.0

// Package bounded keeps texts as short as API servers take them: a condition or an event that is too long is refused as a whole, and takes
// the rest of a status with it. Every condition and every event of the managers goes through here, so the URL of a discovery image that
// another program has put into its text ends here too.
package bounded

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/internal/redact"
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

// SetCondition sets a condition of an object, with its message cut to what fits, and to what everybody may read.
func SetCondition(o conditions.Setter, condition metav1.Condition) {
	condition.Message = Message(condition.Message)
	conditions.Set(o, condition)
}

// Message is what SetCondition makes of a condition's message.
func Message(text string) string { return cut(redact.ImageURLs(text), maxCondition) }

// Recorder records events, each cut to what fits, and to what everybody may read.
type Recorder struct{ events.EventRecorder }

// Eventf records an event.
func (r Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	text := cut(redact.ImageURLs(fmt.Sprintf(note, args...)), maxEvent)
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", text)
}

// cut shortens a text to so many bytes. It does not cut a character in two: API servers refuse what is no UTF-8.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
