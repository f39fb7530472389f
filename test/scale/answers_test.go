// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const answersText = `# TYPE openshift_assisted_own_answer_seconds histogram
openshift_assisted_own_answer_seconds_bucket{controller="config",le="0.005"} 50
openshift_assisted_own_answer_seconds_bucket{controller="config",le="0.165"} 99
openshift_assisted_own_answer_seconds_bucket{controller="config",le="0.4"} 100
openshift_assisted_own_answer_seconds_bucket{controller="config",le="+Inf"} 100
openshift_assisted_own_answer_seconds_sum{controller="config"} 3
openshift_assisted_own_answer_seconds_count{controller="config"} 100
openshift_assisted_own_answer_seconds_bucket{controller="agent",le="0.005"} 1
openshift_assisted_own_answer_seconds_bucket{controller="agent",le="0.165"} 1
openshift_assisted_own_answer_seconds_bucket{controller="agent",le="+Inf"} 2
openshift_assisted_own_answer_seconds_bucket{controller="silent",le="0.005"} 0
openshift_assisted_own_answer_seconds_bucket{controller="silent",le="+Inf"} 0
openshift_assisted_answer_seconds_bucket{controller="config",le="0.4"} 0
openshift_assisted_answer_seconds_bucket{controller="config",le="1"} 100
openshift_assisted_answer_seconds_bucket{controller="config",le="+Inf"} 100
workqueue_queue_duration_seconds_bucket{name="config",controller="config",le="1"} 7
`

func TestReadAnswers(t *testing.T) {
	g := NewWithT(t)
	answers, err := readAnswers(strings.NewReader(answersText), "bootstrap")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answers).To(Equal([]Answers{
		{"bootstrap", "agent", 2, Bounds{P50: 0.005}, Bounds{}},
		{"bootstrap", "config", 100, Bounds{0.005, 0.165, 0.4}, Bounds{1, 1, 1}},
	}))
	var table strings.Builder
	Report{Results: []Result{{Size: 3, Answers: answers}}}.writeAnswers(&table)
	g.Expect(table.String()).To(MatchRegexp("bootstrap\t3\tagent\t2\t≤ 0.005(\tmore){5}"))
	g.Expect(table.String()).To(ContainSubstring("bootstrap\t3\tconfig\t100\t≤ 0.005\t≤ 0.165\t≤ 0.4\t≤ 1\t≤ 1\t≤ 1"))
}

func TestReadAnswersRefusesWhatIsNoNumber(t *testing.T) {
	text := strings.Replace(answersText, `le="0.165"} 99`, `le="0.165"} many`, 1)
	_, err := readAnswers(strings.NewReader(text), "bootstrap")
	NewWithT(t).Expect(err).To(HaveOccurred())
}
