// SPDX-License-Identifier: Apache-2.0

// Package fact is what a decision says of the world, to become a condition when the pass is over.
package fact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// Fact is the status, reason and message of a condition. The zero value says nothing.
type Fact struct {
	// Status is True, False or Unknown.
	Status metav1.ConditionStatus
	// Reason is one of the documented reasons of the condition.
	Reason string
	// Message names objects and says what to do; it holds nothing that changes without a cause (CONTRACT BOOT-54).
	Message string
}

// Waiting is a fact that is not so yet.
func Waiting(reason, format string, args ...any) Fact {
	return Fact{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Done is a fact that is so.
func Done(reason string) Fact { return Fact{Status: metav1.ConditionTrue, Reason: reason} }

// Ongoing is a fact of a condition that is True while something goes on.
func Ongoing(reason, format string, args ...any) Fact {
	return Fact{Status: metav1.ConditionTrue, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Set makes the fact a condition of the object, unless it says nothing.
func (f Fact) Set(o conditions.Setter, conditionType string) {
	if f.Reason == "" {
		return
	}
	bounded.SetCondition(o, metav1.Condition{Type: conditionType, Status: f.Status, Reason: f.Reason, Message: f.Message})
}

// TellUnread writes into a condition that a pass decided nothing, because a read failed with err. A condition that is True keeps its status
// and reason, and gets the message. One whose reason is in keep stays as it is: later passes read from it what they have reported already.
// Any other gets the status and reason of unread. When the read failed because the manager stops, nothing is written.
func TellUnread(o interface {
	conditions.Getter
	conditions.Setter
}, conditionType string, unread Fact, err error, keep ...string) {
	known := conditions.Get(o, conditionType)
	if errors.Is(err, context.Canceled) || known != nil && slices.Contains(keep, known.Reason) {
		return
	}
	f := unread
	if known != nil && known.Status == metav1.ConditionTrue {
		f = Fact{Status: known.Status, Reason: known.Reason}
	}
	f.Message = "Nothing is decided, because not all that is needed can be read: " + strings.Join(strings.Fields(err.Error()), " ")
	f.Set(o, conditionType)
}
