// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var list = []string{"etcdctl", "member", "list", "-w", "json"}

// TestStaleEndpoints is that a pod knows the voters of its revision only, which a removed one may be among.
func TestStaleEndpoints(t *testing.T) {
	w := newWorld(t, Options{}, "a", "b", "c")
	w.off("a")
	w.ticks(1)
	w.leave("b", "a")
	w.deleteNode("a")
	w.ticks(30)
	w.g.Expect(w.Endpoints()).To(HaveLen(2))
	w.g.Expect(w.podEndpoints("b")).To(HaveLen(3), "no new revision is made with two members")
	w.g.Expect(w.Etcdctl("b", list).ExitCode).To(BeZero())
	moved := w.Etcdctl("b", []string{"etcdctl", "move-leader", hexID(w.idOf("c"))})
	w.g.Expect(moved.ExitCode).To(Equal(1), "the first endpoint is the dead one's")
	w.g.Expect(moved.Took).To(Equal(5 * time.Second))
	w.add("d")
	w.ticks(60)
	w.g.Expect(w.podEndpoints("b")).To(Equal([]string{"https://127.91.0.2:2379", "https://127.91.0.3:2379", "https://127.91.0.4:2379"}))
	w.g.Expect(w.Etcdctl("b", []string{"etcdctl", "move-leader", hexID(w.idOf("c"))}).ExitCode).To(BeZero())
}

// TestExecFaults is what can go wrong on the way to etcdctl.
func TestExecFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		fault   ExecFault
		ending  Ending
		removed bool
	}{
		"none": {removed: true}, "hang": {fault: ExecHang, ending: Hangs}, "refused": {fault: ExecRefused, ending: Broken},
		"cut after it took effect": {fault: ExecCut, ending: Broken, removed: true},
		"garbage":                  {fault: ExecGarbage, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := three(t)
			w.Faults.Exec = func(from string, args []string) ExecFault {
				w.g.Expect(from).To(Equal("a"))
				w.g.Expect(args).To(HaveLen(5))
				return tc.fault
			}
			result := w.Etcdctl("a", []string{"etcdctl", "member", "remove", hexID(w.idOf("c")), "--write-out=json"})
			w.g.Expect(result.Ending).To(Equal(tc.ending))
			w.g.Expect(result.ExitCode).To(BeZero())
			w.g.Expect(w.memberAt(w.hosts["c"].Address) == nil).To(Equal(tc.removed))
			if tc.fault == ExecGarbage {
				w.g.Expect(result.Stdout).To(MatchRegexp(`^\{"header.*[^}\n]$`))
			}
		})
	}
}

// TestExecWhere is that an exec needs a host that runs and a pod there, and no Node.
func TestExecWhere(t *testing.T) {
	w := three(t)
	w.off("c")
	w.add("d")
	w.deleteNode("b")
	w.ticks(1)
	w.g.Expect(w.Etcdctl("c", list).Ending).To(Equal(Broken), "no power")
	w.g.Expect(w.Etcdctl("d", list).Ending).To(Equal(Broken), "no pod yet")
	w.g.Expect(w.Etcdctl("nobody", list).Ending).To(Equal(Broken))
	w.g.Expect(w.Etcdctl("b", list).ExitCode).To(BeZero(), "the host runs on without its Node")
}

// TestFlags are spellings that the recordings do not have.
func TestFlags(t *testing.T) {
	w := three(t)
	want := w.Etcdctl("a", list)
	for _, args := range [][]string{
		{"member", "list", "-w=json"}, {"member", "list", "-wjson"}, {"--write-out", "json", "member", "list"},
		{"/usr/bin/etcdctl", "member", "list", "--command-timeout", "3s", "--write-out=json"},
	} {
		w.g.Expect(w.Etcdctl("a", args)).To(Equal(want))
	}
	for _, args := range [][]string{
		{"member", "list", "--cluster"}, {"member", "list", "-x"}, {"get", "x"}, {}, {"member", "list", "--endpoints=x"},
	} {
		w.g.Expect(w.Etcdctl("a", args).ExitCode).To(Equal(1))
	}
	w.off("b", "c")
	w.ticks(1)
	w.g.Expect(w.Etcdctl("a", []string{"member", "list", "--command-timeout=3s"}).Took).To(Equal(3 * time.Second))
}
