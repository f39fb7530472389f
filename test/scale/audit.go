// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// maxNamed is how many of the objects that were written are named.
const maxNamed = 10

// tally is what a user has requested of the management cluster.
type tally struct {
	reads, writes, refused int
	// requests are counted by verb and resource, such as "patch agents/status".
	requests map[string]int
	// written are some of the objects that were written, each with its verb.
	written []string
}

func (t *tally) add(event *auditv1.Event) {
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	if t.requests == nil {
		t.requests = map[string]int{}
	}
	t.requests[event.Verb+" "+resource]++
	if sandbox.IsRead(event.Verb) {
		t.reads++
		return
	}
	t.writes++
	if refused(event) {
		t.refused++
	}
	if name := fmt.Sprintf("%s %s %s/%s", event.Verb, resource, event.ObjectRef.Namespace, event.ObjectRef.Name); len(t.written) < maxNamed &&
		!slices.Contains(t.written, name) {
		t.written = append(t.written, name)
	}
}

func refused(event *auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code >= http.StatusBadRequest
}

// auditEnd is where the next event of an audit log will be.
func auditEnd(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	return info.Size(), nil
}

// talliesSince counts what users have requested since the audit log had a size.
func talliesSince(path string, offset int64) (map[string]*tally, error) {
	tallies := map[string]*tally{}
	err := sandbox.ReadAuditFrom(path, offset, func(event *auditv1.Event) {
		if event.ObjectRef == nil || sandbox.IsHousekeeping(event.ObjectRef.Resource) || aboutItself(event) {
			return
		}
		user := event.User.Username
		if tallies[user] == nil {
			tallies[user] = &tally{}
		}
		tallies[user].add(event)
	})
	return tallies, err
}

// aboutItself reports whether a manager writes an event in its own namespace: that it leads now.
func aboutItself(event *auditv1.Event) bool {
	namespace, _, err := serviceaccount.SplitUsername(event.User.Username)
	return err == nil && event.ObjectRef.Resource == "events" && event.ObjectRef.Namespace == namespace
}

// registration is what became of the Agent of one host, in the time of the API server.
type registration struct {
	// created is when the Agent was made, and told when the service has told its inventory: the event that a claim answers.
	created, told time.Time
	// claimed is when the manager first wrote to it, and bound when it did so last.
	claimed, bound time.Time
}

// registrationsSince follows the Agents of a namespace that somebody else than the manager has made since the audit log had a size.
func registrationsSince(path string, offset int64, namespace, manager string) (map[string]*registration, error) {
	agents := map[string]*registration{}
	err := sandbox.ReadAuditFrom(path, offset, func(event *auditv1.Event) {
		ref := event.ObjectRef
		if ref == nil || ref.Resource != "agents" || ref.Namespace != namespace || refused(event) || sandbox.IsRead(event.Verb) {
			return
		}
		agent, at := agents[ref.Name], event.StageTimestamp.Time
		if agent == nil {
			agent = &registration{created: at}
			agents[ref.Name] = agent
		}
		switch {
		case event.User.Username == manager && agent.claimed.IsZero():
			agent.claimed = at
		case event.User.Username == manager:
			agent.bound = at
		case ref.Subresource == "status" && agent.told.IsZero():
			agent.told = at
		}
	})
	return agents, err
}

// seconds are the times between two moments of all registrations that have both, sorted.
func seconds(agents map[string]*registration, from, to func(*registration) time.Time) []float64 {
	var out []float64
	for _, agent := range agents {
		if begin, end := from(agent), to(agent); !begin.IsZero() && !end.IsZero() {
			out = append(out, max(0, end.Sub(begin).Seconds()))
		}
	}
	slices.Sort(out)
	return out
}
