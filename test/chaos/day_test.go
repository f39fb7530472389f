// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// dayVariable is the environment variable that has the day told.
const dayVariable = "CHAOS_DAY"

const (
	daySpeed = 6
	// hour is an hour of the simulators, which do everything in a hundredth of the real time, at this speed.
	hour = 36 * time.Second / daySpeed
	// rowTimeout is how long a row may take until users see what is waited for.
	rowTimeout = 2 * time.Minute
)

// day is one cluster on the day on which everything fails.
type day struct {
	*WithT
	t       *testing.T
	ctx     context.Context
	world   *sandbox.World
	request sandbox.ClusterRequest
	victims []*Victim
}

// row is one thing that fails, and what is expected meanwhile and afterwards.
type row struct {
	name string
	tell func(d *day)
	// writes are what both managers may write in it, with requests that are refused; warnings the Warning events that they may record.
	writes, warnings int
}

// TestBadDay installs a cluster, changes it and deletes it while everything around the managers fails, one thing after the other. Users see
// what is waited for, the managers do not try again and again, and what is there in the end is what a clean run makes.
func TestBadDay(t *testing.T) {
	if os.Getenv(dayVariable) == "" {
		t.Skipf("make test-chaos, which sets %s, tells it: it takes some minutes", dayVariable)
	}
	t.Parallel() // Clusters wait for most of their time.
	ctrl.SetLogger(klog.Background())
	g := NewWithT(t)
	d := &day{WithT: g, t: t, ctx: t.Context(), request: crashRequest("127.10.8.5")}
	never := func(Write) bool { return false }
	var err error
	d.world, err = sandbox.NewWorld(t.Context(), sandbox.WorldOptions{
		Speed: daySpeed,
		Adjust: func(cp *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
			victim := NewVictim(newClient(g, cp), t.TempDir(), never)
			victim.Adjust(cp, spec)
			d.victims = append(d.victims, victim)
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(d.world.Stop()).To(Succeed()) }()
	g.Expect(d.world.CreateInputs(d.ctx, d.request.Namespace, hosts)).To(Succeed())
	before, err := sandbox.TakeSnapshot(d.ctx, d.world.Management.Admin())
	g.Expect(err).NotTo(HaveOccurred())

	for _, row := range []row{
		{name: "assisted-service is gone before there is an image", tell: (*day).goneBeforeImage, writes: 80},
		{name: "Metal3 is gone before it provisions a host", tell: (*day).goneBeforeHosts, writes: 100},
		{name: "assisted-service is gone while hosts register", tell: (*day).goneWhileRegistering, writes: 80},
		{name: "assisted-service is gone while hosts are installed", tell: (*day).goneWhileInstalling, writes: 400, warnings: 1},
		{name: "the API server is killed, and started again", tell: (*day).killAPIServer, writes: 60},
		{name: "etcd is slow", tell: (*day).slowEtcd, writes: 60},
		{name: "webhooks of the managers are down", tell: (*day).loseWebhooks, writes: 80},
		{name: "Metal3 is gone while a host is freed", tell: (*day).goneWhileFreeing, writes: 80},
		{name: "watch events come an hour late", tell: (*day).hearLate, writes: 100},
	} {
		d.expect(row)
	}
	g.Expect(d.world.DeleteCluster(d.ctx, d.request.Key(), deleteTimeout)).To(Succeed())
	expectNothingLeft(d.ctx, g, d.world, before)
}

// expect tells a row and holds the managers to what they may write in it.
func (d *day) expect(r row) {
	d.t.Helper()
	began, writes, warnings := time.Now(), d.writes(), d.warnings()
	r.tell(d)
	written, warned := d.writes()-writes, d.warnings()-warnings
	d.t.Logf("%s: %s, %d writes, %d warnings", r.name, time.Since(began).Round(time.Second), written, warned)
	d.Expect(written).To(BeNumerically("<=", r.writes), "writes while %s", r.name)
	d.Expect(warned).To(Equal(r.warnings), "Warning events while %s", r.name)
}

// writes counts those of both managers for the cluster, also those that were refused.
func (d *day) writes() int {
	d.t.Helper()
	total := 0
	for _, manager := range []*localcontrolplane.Manager{d.world.Bootstrap, d.world.ControlPlane} {
		writes, err := sandbox.WritesFor(d.world.Management.AuditLog(), manager.User, d.request.Namespace)
		d.Expect(err).NotTo(HaveOccurred())
		for _, write := range writes {
			total += write.Count
		}
	}
	return total
}

// warnings counts the Warning events of both managers.
func (d *day) warnings() int {
	d.t.Helper()
	events, total := &eventsv1.EventList{}, 0
	d.Expect(d.world.Client.List(d.ctx, events, client.InNamespace(d.request.Namespace))).To(Succeed())
	for i := range events.Items {
		event := &events.Items[i]
		if event.Type == "Warning" && strings.Contains(event.ReportingController, "openshift-assisted") {
			total += int(ptr.Deref(event.Series, eventsv1.EventSeries{Count: 1}).Count)
		}
	}
	return total
}

// await waits until a check finds nothing missing.
func (d *day) await(what string, check sandbox.Check) {
	d.t.Helper()
	d.Expect(d.world.AwaitCluster(d.ctx, d.request.Key(), rowTimeout, what, check)).To(Succeed())
}

// passHour lets an hour pass in which nothing can go on, and expects that nothing is tried all the time.
func (d *day) passHour(writes int) {
	d.t.Helper()
	before := d.writes()
	pause(d.ctx, hour)
	written := d.writes() - before
	d.t.Logf("an hour: %d writes", written)
	d.Expect(written).To(BeNumerically("<=", writes), "writes in an hour in which nothing can go on")
}

// running waits until the cluster is Available with all of its Machines, each on its host.
func (d *day) running() {
	d.t.Helper()
	d.Expect(d.world.AwaitCluster(d.ctx, d.request.Key(), installTimeout, "the cluster",
		d.world.Running(d.request.Key(), d.request.Machines()))).To(Succeed())
	_, err := d.world.VerifyHosts(d.ctx, d.request.Key())
	d.Expect(err).NotTo(HaveOccurred())
}

// missing says what a check finds less of than is wanted.
func missing(what string, got, want int) string {
	if got >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d %s", got, want, what)
}
