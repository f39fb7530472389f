// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// maxMembers is far more than any etcd has.
const maxMembers = 32

// etcdctlLimits bound what is parsed of etcdctl's output. A member has some forty values in the longer of the two documents.
var etcdctlLimits = untrusted.Limits{Bytes: maxOutput, Values: 100 * maxMembers}

// memberList is the part that is read of what etcdctl prints for "member list" and "member remove".
type memberList struct {
	Members []struct {
		ID        uint64   `json:"ID"`
		Name      string   `json:"name"`
		PeerURLs  []string `json:"peerURLs"`
		IsLearner bool     `json:"isLearner"`
	} `json:"members"`
}

// endpointStatus is the part that is read of what etcdctl prints for one endpoint.
type endpointStatus struct {
	Status struct {
		Header struct {
			MemberID uint64 `json:"member_id"`
		} `json:"header"`
		Leader   uint64   `json:"leader"`
		RaftTerm uint64   `json:"raftTerm"`
		Errors   []string `json:"errors"`
	} `json:"Status"`
}

// parseMembers reads a list of members. It refuses what no etcd of OpenShift answers, since members are removed by what it says.
func parseMembers(document []byte) ([]Member, error) {
	list := &memberList{}
	if err := parseObject(document, list); err != nil {
		return nil, err
	}
	if len(list.Members) == 0 || len(list.Members) > maxMembers {
		return nil, fmt.Errorf("etcdctl lists %d members, 1 to %d are expected", len(list.Members), maxMembers)
	}
	members := make([]Member, 0, len(list.Members))
	for _, m := range list.Members {
		if m.ID == 0 || slices.ContainsFunc(members, func(other Member) bool { return other.ID == m.ID }) {
			return nil, fmt.Errorf("etcdctl lists a member without an ID, or two of the ID %s", hex(m.ID))
		}
		if m.Name != "" && len(validation.IsDNS1123Subdomain(m.Name)) > 0 {
			return nil, fmt.Errorf("the member %s has a name that no Node can have", hex(m.ID))
		}
		hosts, err := hostsOf(m.PeerURLs)
		if err != nil {
			return nil, fmt.Errorf("the member %s %w", hex(m.ID), err)
		}
		members = append(members, Member{ID: m.ID, Name: m.Name, PeerHosts: hosts, Learner: m.IsLearner})
	}
	return members, nil
}

// hostsOf are the hosts of peer URLs.
func hostsOf(peerURLs []string) ([]string, error) {
	if len(peerURLs) == 0 {
		return nil, errors.New("has no peer URL")
	}
	hosts := make([]string, 0, len(peerURLs))
	for _, raw := range peerURLs {
		peer, err := url.Parse(raw)
		if err != nil || !isHost(peer.Hostname()) {
			return nil, errors.New("has a peer URL without a host") // The parser's error quotes the URL, which may have any length.
		}
		hosts = append(hosts, peer.Hostname())
	}
	return hosts, nil
}

func isHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Zone() == "" || len(validation.IsDNS1123Subdomain(host)) == 0
}

// parseStatus says of members whether they are healthy, and which of them leads. Members whose endpoints are not in the document did not
// answer. A document without any of them is an error: a quorum of the members has just answered with the list, so it says something about
// the command and nothing about the members, and whoever counted them as unhealthy would count how long for.
func parseStatus(members []Member, document []byte) error {
	var endpoints []endpointStatus
	if err := parseJSON(document, &endpoints); err != nil {
		return err
	}
	answered, leader, term := map[uint64]bool{}, uint64(0), uint64(0)
	for _, e := range endpoints {
		id := e.Status.Header.MemberID
		healthy, before := answered[id]
		answered[id] = len(e.Status.Errors) == 0 && (healthy || !before)
		// A member that was cut off still names the leader of an election that was long ago.
		if e.Status.Leader != 0 && e.Status.RaftTerm >= term {
			leader, term = e.Status.Leader, e.Status.RaftTerm
		}
	}
	if !slices.ContainsFunc(members, func(m Member) bool { _, ok := answered[m.ID]; return ok }) {
		return errors.New("etcdctl printed the status of no member")
	}
	for i := range members {
		m := &members[i]
		m.Healthy, m.Leader = m.Name != "" && answered[m.ID], m.ID == leader
	}
	return nil
}

// parseObject is parseJSON for a document that is an object.
func parseObject(document []byte, into any) error {
	var object map[string]json.RawMessage
	if err := parseJSON(document, &object); err != nil {
		return err
	}
	if object == nil {
		return errors.New("etcdctl printed null")
	}
	return parseJSON(document, into)
}

// parseJSON bounds a document before it is parsed: it comes from a cluster of a tenant.
func parseJSON(document []byte, into any) error {
	if err := etcdctlLimits.JSON(document); err != nil {
		return fmt.Errorf("what etcdctl printed is refused: %w", err)
	}
	if err := json.Unmarshal(document, into); err != nil {
		return fmt.Errorf("what etcdctl printed cannot be parsed: %w", err)
	}
	return nil
}
