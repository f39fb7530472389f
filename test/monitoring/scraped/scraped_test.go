// SPDX-License-Identifier: Apache-2.0

package scraped

import (
	"testing"

	. "github.com/onsi/gomega"
)

const text = `# TYPE installs_total counter
installs_total{result="failed",reason="host",topology="a"} 1
installs_total{result="failed",reason="host",topology="b"} 2
installs_total{result="completed",reason="",topology="a"} 4
installs_total{result="retried",reason="asked",topology="a"} 0
# TYPE seconds histogram
seconds_bucket{phase="ready",le="5"} 1
seconds_bucket{phase="ready",le="+Inf"} 3
seconds_sum{phase="ready"} 61
seconds_count{phase="ready"} 3
# TYPE members gauge
members 9
`

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	m, err := Parse([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Values("installs_total", "result", "reason")).To(Equal(map[string]float64{"failed,host": 3, "completed,": 4}))
	g.Expect(m.Values("seconds", "phase")).To(Equal(map[string]float64{"ready": 3}))
	g.Expect(m.Value("members")).To(Equal(9.0))
	g.Expect(m.Value("nothing")).To(BeZero())
	series, err := m.Series()
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, s := range series {
		names = append(names, s.String())
	}
	g.Expect(names).To(ConsistOf(
		`installs_total{reason="host",result="failed",topology="a"}`, `installs_total{reason="host",result="failed",topology="b"}`,
		`installs_total{reason="",result="completed",topology="a"}`, `installs_total{reason="asked",result="retried",topology="a"}`,
		`seconds_bucket{le="5",phase="ready"}`, `seconds_bucket{le="+Inf",phase="ready"}`, `seconds_sum{phase="ready"}`,
		`seconds_count{phase="ready"}`, `members{}`,
	))
}

func TestParseOther(t *testing.T) {
	_, err := Parse([]byte("Unauthorized"))
	NewWithT(t).Expect(err).To(HaveOccurred())
}
