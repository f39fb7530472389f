// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// version is that of the recorded etcd.
const version = "3.6.14"

// Methods of etcd's API, as the client's log names them.
const (
	methodList   = "Cluster/MemberList"
	methodRemove = "Cluster/MemberRemove"
	methodStatus = "Maintenance/Status"
	methodMove   = "Maintenance/MoveLeader"
)

type header struct {
	ClusterID uint64 `json:"cluster_id"`
	MemberID  uint64 `json:"member_id"`
	Revision  int64  `json:"revision,omitempty"`
	RaftTerm  uint64 `json:"raft_term"`
}

type listed struct {
	ID         uint64   `json:"ID"`
	Name       string   `json:"name,omitempty"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	IsLearner  bool     `json:"isLearner,omitempty"`
}

type listing struct {
	Header  header   `json:"header"`
	Members []listed `json:"members"`
}

type endpointState struct {
	Endpoint string `json:"Endpoint"`
	Status   status `json:"Status"`
}

type status struct {
	Header           header   `json:"header"`
	Version          string   `json:"version"`
	DBSize           int64    `json:"dbSize"`
	Leader           uint64   `json:"leader,omitempty"`
	RaftIndex        uint64   `json:"raftIndex"`
	RaftTerm         uint64   `json:"raftTerm"`
	RaftAppliedIndex uint64   `json:"raftAppliedIndex"`
	Errors           []string `json:"errors,omitempty"`
	DBSizeInUse      int64    `json:"dbSizeInUse"`
	IsLearner        bool     `json:"isLearner,omitempty"`
	StorageVersion   string   `json:"storageVersion"`
	DBSizeQuota      int64    `json:"dbSizeQuota"`
	DowngradeInfo    struct{} `json:"downgradeInfo"`
}

func (c *Cluster) header(server uint64) header {
	return header{ClusterID: c.id, MemberID: server, RaftTerm: c.term}
}

func (c *Cluster) listing(server uint64) listing {
	out := listing{Header: c.header(server)}
	for _, m := range c.members {
		entry := listed{ID: m.id, Name: m.name, PeerURLs: []string{m.peerURL()}, IsLearner: m.learner}
		if m.started() {
			entry.ClientURLs = []string{m.clientURL()}
		}
		out.Members = append(out.Members, entry)
	}
	return out
}

// print shows a value as JSON, or the text that is the simple format.
func (a *call) print(value any, simple string) Result {
	switch a.format {
	case "json":
		out, err := json.Marshal(value)
		if err != nil {
			return Result{ExitCode: exitError, Stderr: err.Error() + "\n"}
		}
		return Result{Stdout: string(out) + "\n"}
	case "simple":
		return Result{Stdout: simple}
	}
	return Result{ExitCode: exitBadOutput, Stderr: "Error: unsupported output format\n"}
}

func (c *Cluster) memberList(asked call) Result {
	server, failed := c.server(asked, methodList)
	if failed != nil {
		return c.fail(asked.endpoints, failed, "")
	}
	var simple strings.Builder
	for _, m := range c.members {
		state := "unstarted"
		if m.started() {
			state = "started"
		}
		fmt.Fprintf(&simple, "%s, %s, %s, %s, %s, %t\n", hexID(m.id), state, m.name, m.peerURL(), m.clientURL(), m.learner)
	}
	return asked.print(c.listing(server.id), simple.String())
}

func (c *Cluster) memberRemove(asked call) Result {
	if len(asked.args) != 1 {
		return badArgs("member ID is not provided")
	}
	id, err := strconv.ParseUint(asked.args[0], 16, 64)
	if err != nil {
		return badArgs("bad member ID arg (%v), expecting ID in Hex", err)
	}
	server, failed := c.server(asked, methodRemove)
	if failed == nil {
		failed = c.refusal(server, id)
	}
	if failed != nil {
		return c.fail(asked.endpoints, failed, "")
	}
	term := c.term
	c.remove(id)
	out := c.listing(server.id)
	out.Header.RaftTerm = term // The answer is older than the election that the removal of a leader causes.
	return asked.print(out, fmt.Sprintf("Member %16x removed from cluster %16x\n", id, c.id))
}

// refusal is why etcd does not remove a member, as its strict reconfiguration check has it: a learner is never refused, and a
// voter that is down does not count for quorum.
func (c *Cluster) refusal(server *member, id uint64) *failure {
	target, voters := c.member(id), c.voters()
	if target != nil && target.learner {
		return nil
	}
	others, started, active := 0, 0, 0
	for _, m := range voters {
		if m == server || c.connected(m) {
			active++
		}
		if m.id == id {
			continue
		}
		others++
		if m.started() {
			started++
		}
	}
	switch {
	case started < quorum(others):
		return &failure{method: methodRemove, code: codeUnknown, text: textNotEnough}
	case target == nil:
		return &failure{method: methodRemove, code: codeNotFound, text: textNotFound}
	case target != server && !c.healthy(target):
		return nil
	case active-1 < quorum(len(voters)-1):
		return &failure{method: methodRemove, code: codeUnavailable, text: textUnhealthy}
	}
	return nil
}

func (c *Cluster) endpointStatus(asked call) Result {
	endpoints := asked.endpoints
	if asked.cluster {
		if _, failed := c.server(asked, methodList); failed != nil {
			return c.fail(asked.endpoints, failed, "failed to fetch endpoints from etcd cluster member list: ")
		}
		endpoints = nil
		for _, m := range c.members {
			if m.started() {
				endpoints = append(endpoints, m.clientURL())
			}
		}
	}
	if asked.format != "json" {
		return Result{ExitCode: exitBadOutput, Stderr: "Error: unsupported output format\n"}
	}
	var states []endpointState
	failures, result := "", Result{}
	for _, endpoint := range endpoints {
		m := c.at(endpoint)
		if m == nil {
			failed := asked.deadline(methodStatus)
			failures += c.log([]string{endpoint}, failed) + fmt.Sprintf("Failed to get the status of endpoint %s (%s)\n", endpoint, failed.text)
			result.ExitCode, result.Took = exitError, result.Took+failed.took
			continue
		}
		states = append(states, endpointState{Endpoint: endpoint, Status: c.status(m)})
	}
	result.Stdout, result.Stderr = asked.print(states, "").Stdout, failures
	return result
}

func (c *Cluster) status(m *member) status {
	out := status{
		Header: c.header(m.id), Version: version, DBSize: 40960, Leader: c.leader, RaftIndex: c.index, RaftTerm: c.term,
		RaftAppliedIndex: c.index, DBSizeInUse: 24576, IsLearner: m.learner, StorageVersion: "3.6.0", DBSizeQuota: 8 << 30,
	}
	out.Header.Revision = 1
	if c.leader == 0 {
		out.Errors = []string{"etcdserver: no leader"}
	}
	return out
}

// moveLeader looks for the leader at one endpoint after the other, and gives up at the first that does not answer.
func (c *Cluster) moveLeader(asked call) Result {
	if len(asked.args) != 1 {
		return badArgs("move-leader command needs 1 argument")
	}
	id, err := strconv.ParseUint(asked.args[0], 16, 64)
	if err != nil {
		return badArgs("%v", err)
	}
	for _, endpoint := range asked.endpoints {
		m := c.at(endpoint)
		if m == nil {
			return c.fail([]string{endpoint}, asked.deadline(methodStatus), "")
		}
		if m.id == c.leader {
			return c.transfer(asked, endpoint, id)
		}
	}
	return badArgs("no leader endpoint given at [%s]", strings.Join(asked.endpoints, " "))
}

func (c *Cluster) transfer(asked call, endpoint string, id uint64) Result {
	before, target := c.leader, c.member(id)
	switch {
	case target == nil || target.learner:
		return c.fail([]string{endpoint}, &failure{method: methodMove, code: codePrecondition, text: textTransferee}, "")
	case !c.healthy(target):
		return c.fail([]string{endpoint}, asked.deadline(methodMove), "")
	case before != id:
		c.leader = id
		c.term++
	}
	simple := fmt.Sprintf("Leadership transferred from %s to %s\n", hexID(before), hexID(id))
	return asked.print(map[string]any{}, simple)
}
