// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

// IDs of members that no floating point number is: read as one, the first would end in 589,184.
const (
	firstID  = 9372538179322589801
	secondID = 10276657743932975437
	thirdID  = 18249187646912138824
)

// What etcdctl prints for a member that leads, one that has not started, and a learner with an IPv6 address.
const (
	memberListJSON = `{"header":{"cluster_id":14841639068965178418,"member_id":9372538179322589801,"raft_term":7},"members":[` +
		`{"ID":9372538179322589801,"name":"master-0","peerURLs":["https://192.168.126.10:2380"],"clientURLs":["https://192.168.126.10:2379"]},` +
		`{"ID":10276657743932975437,"peerURLs":["https://192.168.126.11:2380"]},` +
		`{"ID":18249187646912138824,"name":"master-2","peerURLs":["https://[fd2e:6f44:5dd8::12]:2380","https://etcd-2.example.com:2380"],` +
		`"clientURLs":["https://[fd2e:6f44:5dd8::12]:2379"],"isLearner":true}]}` + "\n"

	statusFormat = `{"Endpoint":"https://192.168.126.10:2379","Status":{"header":{"cluster_id":14841639068965178418,"member_id":%d,` +
		`"revision":54321,"raft_term":%[3]d},"version":"3.5.21","dbSize":98304000,"leader":%[2]d,"raftIndex":61234,"raftTerm":%[3]d,` +
		`"raftAppliedIndex":61234,"dbSizeInUse":51200000%s}}`
)

// statusJSON is what etcdctl prints for an endpoint that answers.
func statusJSON(id, leader uint64, term int, errors string) string {
	if errors != "" {
		errors = `,"errors":["` + errors + `"]`
	}
	return fmt.Sprintf(statusFormat, id, leader, term, errors)
}

func TestMembersAreParsed(t *testing.T) {
	g := NewWithT(t)
	g.Expect(uint64(float64(uint64(firstID)))).NotTo(BeEquivalentTo(uint64(firstID)), "the test would not notice a floating point number")
	members, err := parseMembers([]byte(memberListJSON))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(members).To(Equal([]Member{
		{ID: firstID, Name: "master-0", PeerHosts: []string{"192.168.126.10"}},
		{ID: secondID, PeerHosts: []string{"192.168.126.11"}},
		{ID: thirdID, Name: "master-2", PeerHosts: []string{"fd2e:6f44:5dd8::12", "etcd-2.example.com"}, Learner: true},
	}))
	g.Expect(hex(firstID)).To(Equal("8211f1d0f64f3269"))
}

func TestMembersThatNoEtcdLists(t *testing.T) {
	list := func(members ...string) string { return `{"members":[` + strings.Join(members, ",") + `]}` }
	member := func(id, name, peer string) string {
		return fmt.Sprintf(`{"ID":%s,"name":%q,"peerURLs":[%q]}`, id, name, peer)
	}
	const peer = "https://192.168.126.10:2380"
	for name, test := range map[string]struct{ document, want string }{
		"nothing":                    {"", "unexpected end of JSON input"},
		"text":                       {"8211f1d0f64f3269, started, master-0", "cannot be parsed"},
		"null":                       {"null", "etcdctl printed null"},
		"a list":                     {"[]", "cannot unmarshal array"},
		"cut":                        {memberListJSON[:len(memberListJSON)/2], "unexpected end of JSON input"},
		"two documents":              {memberListJSON + memberListJSON, "after top-level value"},
		"no members":                 {`{"header":{}}`, "lists 0 members"},
		"more members than any etcd": {`{"members":[` + strings.Repeat("{},", maxMembers) + `{}]}`, "lists 33 members"},
		"too many values":            {`{"members":[` + strings.Repeat("{},", 1<<16) + `{}]}`, "has more than 3200 values"},
		"too long":                   {`{"members":"` + strings.Repeat("x", maxOutput) + `"}`, "no more than 1048576 bytes are read"},
		"an ID in hex, of --hex":     {list(`{"ID":"8211f1d0f64f3269"}`), "cannot unmarshal string"},
		"an ID with a fraction":      {list(member("1.5", "a", peer)), "cannot unmarshal number 1.5"},
		"an ID of 65 bits":           {list(member("18446744073709551616", "a", peer)), "cannot unmarshal number 18446744073709551616"},
		"no ID":                      {list(member("0", "a", peer)), "a member without an ID"},
		"one ID twice":               {list(member("10", "a", peer), member("10", "b", peer)), "two of the ID a"},
		"a name of two lines":        {list(member("10", "a\nb", peer)), "the member a has a name that no Node can have"},
		"a name that is too long":    {list(member("10", strings.Repeat("a", 254), peer)), "the member a has a name that no Node can have"},
		"no peer URL":                {list(`{"ID":10,"name":"a"}`), "the member a has no peer URL"},
		"a peer URL without a host":  {list(member("10", "a", "https://:2380")), "the member a has a peer URL without a host"},
		"a peer URL that is none":    {list(member("10", "a", "https://[::1")), "the member a has a peer URL without a host"},
		"a host of two words":        {list(member("10", "a", "https://a%20b:2380")), "the member a has a peer URL without a host"},
		"an address with a zone":     {list(member("10", "a", "https://[fe80::1%25x]:2380")), "the member a has a peer URL without a host"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			members, err := parseMembers([]byte(test.document))
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(members).To(BeNil())
			g.Expect(len(err.Error())).To(BeNumerically("<", 200), "the document is not repeated")
		})
	}
}

func TestStatusIsParsed(t *testing.T) {
	for name, test := range map[string]struct {
		endpoints []string
		// healthy and leading are the IDs of the members that are.
		healthy []uint64
		leading uint64
		want    string
	}{
		"all that have started": {
			endpoints: []string{statusJSON(firstID, firstID, 7, ""), statusJSON(thirdID, firstID, 7, "")},
			healthy:   []uint64{firstID, thirdID}, leading: firstID,
		},
		"an endpoint that did not answer, and leads": {
			endpoints: []string{statusJSON(thirdID, firstID, 7, "")}, healthy: []uint64{thirdID}, leading: firstID,
		},
		"a member that knows no leader": {
			endpoints: []string{statusJSON(firstID, firstID, 7, ""), statusJSON(thirdID, 0, 8, "etcdserver: no leader")},
			healthy:   []uint64{firstID}, leading: firstID,
		},
		"an alarm, which every member reports": {
			endpoints: []string{
				statusJSON(firstID, firstID, 7, "memberID:1 alarm:NOSPACE "), statusJSON(thirdID, firstID, 7, "memberID:1 alarm:NOSPACE "),
			},
			leading: firstID,
		},
		"a member that still names the leader before": {
			endpoints: []string{statusJSON(firstID, firstID, 6, ""), statusJSON(thirdID, thirdID, 7, "")},
			healthy:   []uint64{firstID, thirdID}, leading: thirdID,
		},
		"the same in another order": {
			endpoints: []string{statusJSON(thirdID, thirdID, 7, ""), statusJSON(firstID, firstID, 6, "")},
			healthy:   []uint64{firstID, thirdID}, leading: thirdID,
		},
		"two endpoints of a member, one with an error": {
			endpoints: []string{
				statusJSON(firstID, firstID, 7, "etcdserver: no leader"), statusJSON(firstID, firstID, 7, ""), statusJSON(thirdID, firstID, 7, ""),
			},
			healthy: []uint64{thirdID}, leading: firstID,
		},
		"a member that has just started": {
			endpoints: []string{statusJSON(firstID, firstID, 7, ""), statusJSON(secondID, firstID, 7, "")},
			healthy:   []uint64{firstID}, leading: firstID,
		},
		"no endpoint":           {want: "etcdctl printed the status of no member"},
		"other members only":    {endpoints: []string{statusJSON(1, 1, 7, "")}, want: "etcdctl printed the status of no member"},
		"endpoints of no shape": {endpoints: []string{`{"Endpoint":"https://192.168.126.10:2379"}`}, want: "the status of no member"},
		"garbage":               {endpoints: []string{"{"}, want: "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			members, err := parseMembers([]byte(memberListJSON))
			g.Expect(err).NotTo(HaveOccurred())
			err = parseStatus(members, []byte("["+strings.Join(test.endpoints, ",")+"]\n"))
			if test.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range members {
				healthy := BeEquivalentTo(slices.Contains(test.healthy, m.ID))
				g.Expect(m.Healthy).To(healthy, "is %s healthy?", hex(m.ID))
				g.Expect(m.Leader).To(Equal(m.ID == test.leading), "does %s lead?", hex(m.ID))
			}
		})
	}
	// etcdctl prints null when no endpoint answered.
	NewWithT(t).Expect(parseStatus([]Member{{ID: 1}}, []byte("null"))).To(MatchError(ContainSubstring("the status of no member")))
}

// FuzzMembers is for what etcdctl prints in a cluster of a tenant.
func FuzzMembers(f *testing.F) {
	status := "[" + statusJSON(firstID, firstID, 7, "") + "," + statusJSON(thirdID, firstID, 7, "etcdserver: no leader") + "]"
	for _, list := range []string{
		memberListJSON, "null", "", `{"members":[` + strings.Repeat("{},", maxMembers) + `{}]}`,
		`{"members":[` + strings.Repeat("{},", maxOutput/4) + `{}]}`, strings.Repeat("[", 1000),
		`{"members":[{"ID":1,"peerURLs":[` + strings.Repeat(`"http://a",`, 1000) + `"http://a"]}]}`,
	} {
		f.Add(list, status)
		f.Add(memberListJSON, list)
	}
	f.Fuzz(func(t *testing.T, list, status string) {
		untrustedtest.Bounded(t, func() {
			members, err := parseMembers([]byte(list))
			if err != nil {
				return
			}
			_ = parseStatus(members, []byte(status))
			for _, m := range members {
				if m.ID == 0 || len(m.Name) > 253 || len(m.PeerHosts) == 0 {
					t.Errorf("not a member: %+v", m)
				}
			}
		})
	})
}

// TestQuotedErrors: what is others each time does not change a condition with every pass.
func TestQuotedErrors(t *testing.T) {
	g := NewWithT(t)
	err := errors.New(`Post "https://10.0.0.2:10250/exec/openshift-etcd/etcd-a/etcdctl": read tcp 10.0.0.1:34567->10.0.0.2:10250: reset`)
	g.Expect(quoted{err}.Error()).To(Equal("reset"))
	err = errors.New("x509: certificate has expired or is not yet valid: current time 2026-02-01T10:00:00Z is after 2026-01-01T00:00:00Z")
	g.Expect(quoted{err}.Error()).To(Equal("x509: certificate has expired or is not yet valid: after 2026-01-01T00:00:00Z"))
}
