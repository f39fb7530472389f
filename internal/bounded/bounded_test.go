// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// TestNoImageURL: the URL of a discovery image is in no condition and no event, whoever wrote it into a text. Other URLs are.
func TestNoImageURL(t *testing.T) {
	g := NewWithT(t)
	const text = "InputError: http://images:8080/byapikey/eyJhbGci.x/minimal.iso is gone: read https://a.example.com/solutions/1"
	const want = "InputError: http://images:8080/[redacted] is gone: read https://a.example.com/solutions/1"
	config, recorder := &bootstrapv1.OpenshiftAssistedConfig{}, events.NewFakeRecorder(1)
	SetCondition(config, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "X", Message: text})
	g.Expect(conditions.GetMessage(config, "Ready")).To(Equal(want))
	Recorder{recorder}.Eventf(config, nil, "Warning", "X", "X", "%s", text)
	g.Expect(<-recorder.Events).To(ContainSubstring(want))
}

func TestCut(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"short":                      {text: "short", want: "short"},
		"just fits":                  {text: "0123456789", want: "0123456789"},
		"one too long":               {text: "0123456789a", want: "0123456…"},
		"not through a character":    {text: "012345é89ab", want: "012345…"},
		"not through a longer one":   {text: "01234\U0001F600xyz", want: "01234…"},
		"behind a character that is": {text: "01234é89abc", want: "01234é…"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(cut(test.text, 10)).To(Equal(test.want)) })
	}
}

// An Agent with thousands of network interfaces makes messages that API servers refuse.
func TestSetCondition(t *testing.T) {
	g := NewWithT(t)
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	condition := metav1.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "B", Message: strings.Repeat("é", 40_000)}
	SetCondition(config, condition)
	set := conditions.Get(config, "A")
	g.Expect(len(set.Message)).To(BeNumerically("<=", 4096))
	g.Expect(utf8.ValidString(set.Message)).To(BeTrue())
	since := metav1.NewTime(set.LastTransitionTime.AddDate(-1, 0, 0))
	config.Status.Conditions[0].LastTransitionTime = since
	SetCondition(config, condition)
	g.Expect(conditions.Get(config, "A").LastTransitionTime).To(Equal(since), "the same message changes nothing")
}

func TestRecorder(t *testing.T) {
	g := NewWithT(t)
	fake := events.NewFakeRecorder(1)
	Recorder{fake}.Eventf(&bootstrapv1.OpenshiftAssistedConfig{}, nil, "Normal", "Reason", "Action", "%d%% %s", 5, strings.Repeat("é", 2000))
	recorded := <-fake.Events
	g.Expect(recorded).To(And(HavePrefix("Normal Reason 5% é"), HaveSuffix("é…")))
	g.Expect(len(recorded) - len("Normal Reason ")).To(BeNumerically("<=", 1024))
}
