// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

func TestTellUnread(t *testing.T) {
	const told = "Nothing is decided, because not all that is needed can be read: no answer from a server"
	for name, tt := range map[string]struct {
		known *Fact
		err   error
		want  Fact
	}{
		"nothing was known": {want: Fact{metav1.ConditionUnknown, "ReadFailed", told}},
		"it was waited for": {
			known: &Fact{metav1.ConditionFalse, "Waiting", "x"}, want: Fact{metav1.ConditionUnknown, "ReadFailed", told},
		},
		"what is True stays": {known: &Fact{metav1.ConditionTrue, "Done", ""}, want: Fact{metav1.ConditionTrue, "Done", told}},
		"what is remembered": {known: &Fact{metav1.ConditionFalse, "Kept", "x"}, want: Fact{metav1.ConditionFalse, "Kept", "x"}},
		"the manager stops": {
			known: &Fact{metav1.ConditionTrue, "Done", "x"}, err: context.Canceled, want: Fact{metav1.ConditionTrue, "Done", "x"},
		},
		"it could not be read": {
			known: &Fact{metav1.ConditionUnknown, "ReadFailed", "x"}, want: Fact{metav1.ConditionUnknown, "ReadFailed", told},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := &clusterv1.Machine{}
			if tt.known != nil {
				tt.known.Set(o, "Condition")
			}
			err := errors.New("no answer\nfrom a\n server")
			if tt.err != nil {
				err = fmt.Errorf("read: %w", tt.err)
			}
			TellUnread(o, "Condition", Fact{Status: metav1.ConditionUnknown, Reason: "ReadFailed"}, err, "Kept")
			g.Expect(conditions.Get(o, "Condition")).To(HaveValue(And(
				HaveField("Status", tt.want.Status), HaveField("Reason", tt.want.Reason), HaveField("Message", tt.want.Message))))
		})
	}
}
