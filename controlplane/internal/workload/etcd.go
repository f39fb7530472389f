// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Etcd tells how the etcd of an installed cluster is, and changes its members (DESIGN D25).
type Etcd interface {
	// EtcdOperator reads what the operator of etcd reports, and lets every later change of it wake the subscriber. It is nil without an error
	// when there is no connection, and when the operator has not reported anything yet.
	EtcdOperator(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (*EtcdReport, error)
	// Members asks etcd itself for its members. Like the other two methods it runs a program in a container of etcd, so nothing but a change
	// that is about to be made is worth it. None of the three uses the Pod on the Node avoid, whose host may be dead or about to go.
	Members(ctx context.Context, cluster client.ObjectKey, avoid string) ([]Member, error)
	// RemoveMember removes a member. That there is none of this ID is no error. The error is an ErrEtcdRefused when etcd does not do it, and
	// an ErrOutcomeUnknown when nobody knows whether it did.
	RemoveMember(ctx context.Context, cluster client.ObjectKey, avoid string, id uint64) error
	// MoveLeader makes a member the leader. The error is an ErrOutcomeUnknown when nobody knows whether it is.
	MoveLeader(ctx context.Context, cluster client.ObjectKey, avoid string, to uint64) error
}

// Member is a member of etcd, as etcd itself lists it.
type Member struct {
	// ID is the member's ID. Any 64 bits are one: as a floating point number it would be another member's.
	ID uint64
	// Name is the name of its Node; empty as long as the member has not started.
	Name string
	// PeerHosts are the hosts of its peer URLs, in etcd's order: without ports, and without the brackets of IPv6 addresses.
	PeerHosts []string
	// Learner: it does not vote yet.
	Learner bool
	// Healthy: it has started, and its endpoint answered and reported no error. Errors are that it knows no leader, and alarms, which are
	// those of the whole cluster.
	Healthy bool
	// Leader: it leads the others.
	Leader bool
}

var (
	// ErrEtcdRefused says that etcd has refused a removal because of quorum, and removed nothing. etcd's own words follow.
	ErrEtcdRefused = errors.New("etcd refuses")
	// ErrOutcomeUnknown says that a change was sent and no answer came back that can be understood. Whoever gets it reads Members again: to
	// repeat the change would be a decision on members that are no longer these.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
)

// What etcd says when it does not remove a member. It says so in a line of its own, so the lines are compared as a whole.
const (
	saysNotFound         = "etcdserver: member not found"
	saysUnhealthy        = "etcdserver: unhealthy cluster"
	saysNotEnoughStarted = "etcdserver: re-configuration failed due to not enough started members"
)

const (
	// commandTimeout is how long etcdctl tries. etcd itself gives up a change after 5 s and two elections, of up to 2.5 s each on slow
	// hardware: with less, etcdctl gave up changes that etcd still makes.
	commandTimeout = 10 * time.Second
	// endpointTimeout is how long etcdctl waits for the status of one endpoint. It asks one after the other.
	endpointTimeout = 5 * time.Second
)

// Members runs two commands in the same container. A quorum of etcd answers the first. The second exits with an error when one of the
// endpoints does not answer, and prints the status of the others.
func (c Cached) Members(ctx context.Context, cluster client.ObjectKey, avoid string) ([]Member, error) {
	pod, err := c.etcdPod(ctx, cluster, avoid)
	if err != nil {
		return nil, err
	}
	listed, err := pod.run(ctx, commandTimeout, "member", "list", "--command-timeout="+commandTimeout.String(), "--write-out=json")
	if err != nil {
		return nil, pod.failed("list the members of etcd", err)
	}
	if listed.code != 0 {
		return nil, pod.failed("list the members of etcd", listed.failure())
	}
	members, err := parseMembers(listed.stdout)
	if err != nil {
		return nil, pod.failed("list the members of etcd", err)
	}
	atMost := endpointTimeout * time.Duration(1+len(members)) // The list, which it reads by itself, and one endpoint after the other.
	status, err := pod.run(ctx, atMost, "endpoint", "status", "--cluster", "--command-timeout="+endpointTimeout.String(), "--write-out=json")
	if err != nil {
		return nil, pod.failed("read the status of the members of etcd", err)
	}
	if err := parseStatus(members, status.stdout); err != nil {
		return nil, pod.failed("read the status of the members of etcd", errors.Join(err, status.failure()))
	}
	return members, nil
}

// RemoveMember sends the removal once. etcd does not use the ID of a removed member again, so even a removal that arrives late removes no
// other member.
func (c Cached) RemoveMember(ctx context.Context, cluster client.ObjectKey, avoid string, id uint64) error {
	pod, err := c.etcdPod(ctx, cluster, avoid)
	if err != nil {
		return err
	}
	what := "remove the member " + hex(id) + " of etcd"
	answer, err := pod.run(
		ctx, commandTimeout, "member", "remove", hex(id), "--command-timeout="+commandTimeout.String(), "--write-out=json",
	)
	if err != nil {
		return pod.failed(what, unknown(err))
	}
	if answer.code != 0 {
		return pod.failed(what, notRemoved(answer))
	}
	// A connection that is cut ends like a command that succeeds. Nothing but the list that etcd answers with tells one from the other.
	left, err := parseMembers(answer.stdout)
	if err != nil {
		return pod.failed(what, unknown(err))
	}
	if slices.ContainsFunc(left, func(m Member) bool { return m.ID == id }) {
		return pod.failed(what, unknown(errors.New("etcd says that the member is removed, and lists it")))
	}
	return nil
}

// notRemoved is why etcdctl did not remove a member; nil when there is none.
func notRemoved(answer *printed) error {
	switch words := answer.words(); words {
	case saysNotFound:
		return nil
	case saysUnhealthy, saysNotEnoughStarted:
		return fmt.Errorf("%w: %s", ErrEtcdRefused, words)
	default:
		return unknown(answer.failure())
	}
}

// MoveLeader sends the request once.
func (c Cached) MoveLeader(ctx context.Context, cluster client.ObjectKey, avoid string, to uint64) error {
	pod, err := c.etcdPod(ctx, cluster, avoid)
	if err != nil {
		return err
	}
	what := "make the member " + hex(to) + " of etcd the leader"
	answer, err := pod.run(ctx, commandTimeout, "move-leader", hex(to), "--command-timeout="+commandTimeout.String(), "--write-out=json")
	switch {
	case err != nil:
		return pod.failed(what, unknown(err))
	case answer.code != 0:
		return pod.failed(what, unknown(answer.failure()))
	}
	// See RemoveMember: what was cut prints nothing. etcd answers with an object that may be empty.
	if err := parseObject(answer.stdout, &struct{}{}); err != nil {
		return pod.failed(what, unknown(err))
	}
	return nil
}

// hex is how etcdctl reads the IDs of members. It prints them as decimal numbers in JSON: with its flag --hex the list would not say which
// members are learners.
func hex(id uint64) string { return strconv.FormatUint(id, 16) }

// unknown says that nobody knows whether a change was made.
func unknown(err error) error { return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err) }
