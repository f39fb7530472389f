// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/tracing"
	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
)

const (
	// Members a and b, of which a leads; b is dead.
	twoMembers = `{"header":{"member_id":9372538179322589801},"members":[{"ID":9372538179322589801,"name":"m-0",` +
		`"peerURLs":["https://192.168.126.10:2380"],"clientURLs":["https://192.168.126.10:2379"]},{"ID":10276657743932975437,"name":"m-1",` +
		`"peerURLs":["https://192.168.126.11:2380"],"clientURLs":["https://192.168.126.11:2379"]}]}` + "\n"
	oneMember = `{"header":{"member_id":9372538179322589801},"members":[{"ID":9372538179322589801,"name":"m-0",` +
		`"peerURLs":["https://192.168.126.10:2380"],"clientURLs":["https://192.168.126.10:2379"]}]}` + "\n"
	oneStatus = `[{"Endpoint":"https://192.168.126.10:2379","Status":{"header":{"member_id":9372538179322589801},"version":"3.5.21",` +
		`"leader":9372538179322589801,"raftTerm":7}}]` + "\n"
	oneFails = `{"level":"warn","ts":"2026-01-02T03:04:05.678901Z","logger":"etcd-client","caller":"v3@v3.5.21/retry_interceptor.go:63",` +
		`"msg":"retrying of unary invoker failed","target":"etcd-endpoints://0xc0002e6000/192.168.126.11:2379","attempt":0,` +
		`"error":"rpc error: code = DeadlineExceeded desc = latest balancer error: connection refused"}` + "\n" +
		"Failed to get the status of endpoint https://192.168.126.11:2379 (context deadline exceeded)\n"

	deadID, deadHex = uint64(10276657743932975437), "8e9e05c52164694d"

	listProgram   = "etcdctl member list --command-timeout=10s --write-out=json"
	statusProgram = "etcdctl endpoint status --cluster --command-timeout=5s --write-out=json"
	removeProgram = "etcdctl member remove " + deadHex + " --command-timeout=10s --write-out=json"
	throughPod    = "through a Pod in Namespace openshift-etcd of Cluster ns/c: "

	moveProgram = "etcdctl move-leader " + deadHex + " --command-timeout=10s --write-out=json"
)

// logged is what etcdctl logs of a refusal.
func logged(words string) string {
	return `{"level":"warn","ts":"2026-01-02T03:04:05.678901Z","logger":"etcd-client","caller":"v3@v3.5.21/retry_interceptor.go:63",` +
		`"msg":"retrying of unary invoker failed","error":"rpc error: code = FailedPrecondition desc = ` + words + `"}` + "\n"
}

// refusal is what etcdctl logs of a refusal, and then says.
func refusal(words string) string { return logged(words) + "Error: " + words + "\n" }

func TestMembers(t *testing.T) {
	for _, protocol := range []string{overWebSockets, overSPDY} {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			up, server := serving(t, protocol, func(program string) said {
				if program == listProgram {
					return said{stdout: twoMembers}
				}
				return said{stdout: oneStatus, stderr: oneFails, code: 1}
			}, etcdPod("m-0"), etcdPod("m-1"))
			members, err := up.Members(t.Context(), cluster, "m-1")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(members).To(Equal([]workload.Member{
				{ID: 9372538179322589801, Name: "m-0", PeerHosts: []string{"192.168.126.10"}, Healthy: true, Leader: true},
				{ID: deadID, Name: "m-1", PeerHosts: []string{"192.168.126.11"}},
			}))
			g.Expect(server.asked()).To(Equal([]string{listProgram, statusProgram}))
			server.expectManners(g, "etcd-m-0")
			g.Expect(server.deadlines).To(HaveEach(BeNumerically(">", 20*time.Second)), "etcdctl gives up first")
			g.Expect(server.deadlines[0]).To(BeNumerically("<=", (10+15)*time.Second))
			g.Expect(server.deadlines).To(HaveEach(BeNumerically("<=", (3*5+15)*time.Second)))
		})
	}
}

// TestEveryPodIsAsked: a Node that cannot run commands does not stop everything for ever.
func TestEveryPodIsAsked(t *testing.T) {
	g := NewWithT(t)
	up, server := serving(t, overWebSockets, func(string) said { return said{stdout: "{}"} }, etcdPod("m-0"), etcdPod("m-1"), etcdPod("m-2"))
	g.Eventually(func() []string {
		g.Expect(up.MoveLeader(t.Context(), cluster, "m-1", deadID)).To(Succeed())
		return server.pods()
	}).WithTimeout(30 * time.Second).Should(ConsistOf("etcd-m-0", "etcd-m-2"))
}

func TestMembersThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		list, status said
		want         string
	}{
		"no quorum": {
			list: said{stderr: "Error: context deadline exceeded\n", code: 1},
			want: "list the members of etcd " + throughPod + "etcdctl exited with code 1: context deadline exceeded",
		},
		"no answer":       {list: said{instead: cuts}, want: "list the members of etcd"},
		"garbage":         {list: said{stdout: "<html>"}, want: "list the members of etcd " + throughPod + "what etcdctl printed cannot be"},
		"too long":        {list: said{stdout: strings.Repeat(" ", 2<<20)}, want: "etcdctl printed more than 1048576 bytes"},
		"too long a fuss": {list: said{stderr: strings.Repeat("e", 2<<20), code: 1}, want: "etcdctl printed more than 1048576 bytes"},
		"words without an end": {
			list: said{stderr: "Error: " + strings.Repeat("so on, ", 2000), code: 1}, want: "code 1: so on, so on",
		},
		"no status": {
			list: said{stdout: twoMembers}, status: said{stdout: "null\n", stderr: oneFails, code: 1},
			want: "read the status of the members of etcd " + throughPod + "etcdctl printed the status of no member",
		},
		"a status that is cut": {list: said{stdout: twoMembers}, status: said{stdout: oneStatus[:50], instead: cuts}, want: "read the status"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			up, _ := serving(t, overWebSockets, func(program string) said {
				if program == listProgram {
					return test.list
				}
				return test.status
			}, etcdPod("m-0"))
			members, err := up.Members(t.Context(), cluster, "m-1")
			g.Expect(members).To(BeNil())
			expectFit(g, err)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err).NotTo(MatchError(workload.ErrOutcomeUnknown), "nothing was to be changed")
		})
	}
}

// expectFit expects an error that can be shown.
func expectFit(g *WithT, err error) {
	g.Expect(err).To(HaveOccurred())
	g.Expect(len(err.Error())).To(BeNumerically("<", 800))
	g.Expect(err.Error()).NotTo(Or(ContainSubstring("\n"), ContainSubstring(token)))
}

func TestRemoveMember(t *testing.T) {
	refused := And(MatchError(workload.ErrEtcdRefused), Not(MatchError(workload.ErrOutcomeUnknown)))
	unknown := And(MatchError(workload.ErrOutcomeUnknown), Not(MatchError(workload.ErrEtcdRefused)))
	for name, test := range map[string]struct {
		answer said
		want   types.GomegaMatcher
	}{
		"removed":      {said{stdout: oneMember}, Succeed()},
		"gone already": {said{stderr: refusal("etcdserver: member not found"), code: 1}, Succeed()},
		"others are not healthy": {
			said{stderr: refusal("etcdserver: unhealthy cluster"), code: 1},
			And(refused, MatchError(ContainSubstring("etcd refuses: etcdserver: unhealthy"))),
		},
		"others have not started": {
			said{stderr: refusal("etcdserver: re-configuration failed due to not enough started members"), code: 1}, refused,
		},
		"no leader in time":        {said{stderr: refusal("etcdserver: request timed out"), code: 1}, unknown},
		"no answer in time":        {said{stderr: "Error: context deadline exceeded\n", code: 1}, unknown},
		"words in a log only":      {said{stderr: logged("etcdserver: member not found"), code: 1}, unknown},
		"more words than these":    {said{stderr: "Error: etcdserver: member not found, etcdserver: unhealthy cluster\n", code: 1}, unknown},
		"removed, and still there": {said{stdout: twoMembers}, unknown},
		"success without a list":   {said{stdout: "Member 8e9e05c52164694d removed from cluster ef37ad9dc622a7c4\n"}, unknown},
		"success without a word":   {said{}, unknown},
		"cut":                      {said{instead: cuts}, unknown},
		"cut while it prints":      {said{stdout: oneMember[:20], instead: cuts}, unknown},
		"too long":                 {said{stdout: strings.Repeat(oneMember, 10000)}, unknown},
	} {
		for _, protocol := range []string{overWebSockets, overSPDY} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				g := NewWithT(t)
				up, server := serving(t, protocol, func(string) said { return test.answer }, etcdPod("m-0"), etcdPod("m-1"))
				err := up.RemoveMember(t.Context(), cluster, "m-1", deadID)
				g.Expect(err).To(test.want)
				g.Expect(server.asked()).To(Equal([]string{removeProgram}), "a change is sent once")
				server.expectManners(g, "etcd-m-0")
				if err != nil {
					expectFit(g, err)
					g.Expect(err.Error()).To(HavePrefix("remove the member 8e9e05c52164694d of etcd " + throughPod))
				}
			})
		}
	}
}

func TestMoveLeader(t *testing.T) {
	for name, test := range map[string]struct {
		answer said
		want   types.GomegaMatcher
	}{
		"moved": {said{stdout: "{}\n"}, Succeed()},
		"no leader there": {
			said{stderr: "Error: no leader endpoint given at [https://192.168.126.10:2379]\n", code: 128},
			And(MatchError(workload.ErrOutcomeUnknown), MatchError(ContainSubstring("code 128: no leader endpoint given"))),
		},
		"success without a word": {said{}, MatchError(workload.ErrOutcomeUnknown)},
		"cut":                    {said{instead: cuts}, MatchError(workload.ErrOutcomeUnknown)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			up, server := serving(t, overWebSockets, func(string) said { return test.answer }, etcdPod("m-0"))
			g.Expect(up.MoveLeader(t.Context(), cluster, "m-1", deadID)).To(test.want)
			g.Expect(server.asked()).To(Equal([]string{moveProgram}))
		})
	}
}

// deadline is a context that ends when the test says so, as one whose time is over does.
type deadline struct {
	context.Context //nolint:containedctx // It is one itself.

	over chan struct{}
}

// Done implements context.Context.
func (d deadline) Done() <-chan struct{} { return d.over }

// Err implements context.Context.
func (d deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestEtcdThatHangs: a command ends with its context, and nothing of it is left. The server never gives up.
func TestEtcdThatHangs(t *testing.T) {
	type running struct {
		server *execServer
		ended  chan error
	}
	all := map[string]running{}
	ctx := deadline{t.Context(), make(chan struct{})}
	for _, protocol := range []string{overWebSockets, overSPDY} {
		for _, how := range []string{hangs, neverUpgrade} {
			up, server := serving(t, protocol, func(string) said { return said{instead: how} }, etcdPod("m-0"))
			ended := make(chan error, 1)
			go func() { ended <- up.RemoveMember(ctx, cluster, "m-1", deadID) }()
			all[protocol+" "+how] = running{server, ended}
		}
	}
	for name, r := range all {
		// Not as soon as the server is asked: over SPDY, the streams of a command arrive after the request for it.
		NewWithT(t).Eventually(r.server.hung).WithTimeout(time.Minute).Should(Receive(), name)
	}
	close(ctx.over)
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var err error
			g.Eventually(r.ended).WithTimeout(time.Minute).Should(Receive(&err))
			g.Expect(err).To(And(MatchError(workload.ErrOutcomeUnknown), MatchError(context.DeadlineExceeded)))
			expectFit(g, err)
			g.Eventually(r.server.left).WithTimeout(time.Minute).Should(Receive(), "the connection is closed")
			g.Expect(r.server.asked()).To(HaveLen(1))
		})
	}
	NewWithT(t).Eventually(streaming).WithTimeout(10 * time.Second).Should(BeEmpty())
}

// streaming are the goroutines of client-go's streams. The one that shows that a connection is alive ends with its next try.
func streaming() []string {
	var left []string
	for _, g := range gleak.Goroutines() {
		if strings.Contains(g.Backtrace, "client-go/tools/remotecommand") && !strings.Contains(g.Backtrace, "heartbeat") {
			left = append(left, g.Backtrace)
		}
	}
	return left
}

func TestNoPodForEtcdctl(t *testing.T) {
	for name, pods := range map[string][]client.Object{
		"none":                    nil,
		"on the Node to avoid":    {etcdPod("m-1")},
		"not Ready":               {etcdPod("m-0", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })},
		"without conditions":      {etcdPod("m-0", func(p *corev1.Pod) { p.Status.Conditions = nil })},
		"without the container":   {etcdPod("m-0", func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:] })},
		"of a guard":              {etcdPod("m-0", func(p *corev1.Pod) { p.Labels["app"] = "guard" })},
		"in another namespace":    {etcdPod("m-0", func(p *corev1.Pod) { p.Namespace = "default" })},
		"of an impossible name":   {etcdPod("m-0", func(p *corev1.Pod) { p.Name = "../../nodes/m-0" })},
		"that is about to go":     {etcdPod("m-0", deleting)},
		"one of each of the last": {etcdPod("m-1"), etcdPod("m-0", deleting)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			up, server := serving(t, overWebSockets, func(string) said { return said{stdout: oneMember} }, pods...)
			err := up.RemoveMember(t.Context(), cluster, "m-1", deadID)
			g.Expect(err).To(MatchError(ContainSubstring(
				`Cluster ns/c has no Ready Pod with label app=etcd and a container etcdctl in Namespace openshift-etcd, on another Node than "m-1"`)))
			g.Expect(err).NotTo(MatchError(workload.ErrOutcomeUnknown), "nothing was sent")
			_, err = up.Members(t.Context(), cluster, "m-1")
			g.Expect(err).To(MatchError(ContainSubstring("has no Ready Pod")))
			g.Expect(up.MoveLeader(t.Context(), cluster, "m-1", deadID)).To(MatchError(ContainSubstring("has no Ready Pod")))
			g.Expect(server.asked()).To(BeEmpty())
		})
	}
}

func deleting(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(0, 0)}, []string{"example.com/stays"}
}

func TestEtcdOfALostCluster(t *testing.T) {
	g := NewWithT(t)
	lost := workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}
	_, err := lost.Members(t.Context(), cluster, "")
	g.Expect(err).To(MatchError(clustercache.ErrClusterNotConnected))
	err = lost.RemoveMember(t.Context(), cluster, "", deadID)
	g.Expect(err).To(And(MatchError(clustercache.ErrClusterNotConnected), Not(MatchError(workload.ErrOutcomeUnknown))))
	g.Expect(lost.MoveLeader(t.Context(), cluster, "", deadID)).To(MatchError(clustercache.ErrClusterNotConnected))

	up := connected(t, interceptor.Funcs{}, etcdPod("m-0"))
	up.Cache = lostMeanwhile{up.Cache}
	_, err = up.Members(t.Context(), cluster, "")
	g.Expect(err).To(MatchError(clustercache.ErrClusterNotConnected))
}

// TestTraceOfEtcdctl: each command is shown below the pass, with what it came to.
func TestTraceOfEtcdctl(t *testing.T) {
	g, spans := NewWithT(t), tracingtest.New()
	up, _ := serving(t, overWebSockets, func(program string) said {
		if program == listProgram {
			return said{stdout: twoMembers}
		}
		return said{stdout: oneStatus, stderr: oneFails, code: 1}
	}, etcdPod("m-0"), etcdPod("m-1"))
	pass := spans.Pass(t)
	_, err := up.Members(pass, cluster, "m-1")
	g.Expect(err).NotTo(HaveOccurred())
	ran := spans.Below(pass, "etcdctl")
	g.Expect(ran).To(HaveLen(2))
	g.Expect(tracingtest.Value(ran[0], tracing.CommandAttribute)).To(HavePrefix(`["member","list"`))
	g.Expect(tracingtest.Value(ran[1], tracing.CommandAttribute)).To(HavePrefix(`["endpoint","status"`))
}
