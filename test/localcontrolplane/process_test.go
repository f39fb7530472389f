// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const goneTimeout = time.Minute

func script(t *testing.T, text string, ready func(context.Context) error) *Process {
	t.Helper()
	return &Process{spec: processSpec{
		name: "script", path: "/bin/sh", args: []string{"-c", text},
		logFile: filepath.Join(t.TempDir(), "log"), ready: ready, timeout: 3 * time.Second,
	}}
}

func alwaysReady(context.Context) error { return nil }
func neverReady(context.Context) error  { return errors.New("not ready") }

func TestProcessThatEndsBeforeReadyReportsLogTail(t *testing.T) {
	g := NewWithT(t)
	process := script(t, `i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo "line $i"; done; exit 3`, neverReady)
	process.spec.timeout = time.Minute
	err := process.Start(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("exit status 3")))
	g.Expect(err).To(MatchError(ContainSubstring("line 11\n")))
	g.Expect(err).To(MatchError(ContainSubstring("line 30")))
	g.Expect(err).NotTo(MatchError(ContainSubstring("line 10\n")))
	g.Expect(process.Running()).To(BeFalse())
}

func TestProcessThatIsNeverReadyIsKilled(t *testing.T) {
	g := NewWithT(t)
	process := script(t, "echo waiting; exec sleep 1000", neverReady)
	g.Expect(process.Start(t.Context())).To(MatchError(ContainSubstring("waiting")))
	g.Expect(process.Running()).To(BeFalse())
}

func TestProcessLifecycle(t *testing.T) {
	g := NewWithT(t)
	process := script(t, "exec sleep 1000", alwaysReady)
	g.Expect(process.Wait(t.Context())).To(MatchError(ErrNotRunning))
	g.Expect(process.Signal(syscall.SIGTERM)).To(MatchError(ErrNotRunning))
	g.Expect(process.Kill9()).To(MatchError(ErrNotRunning))

	g.Expect(process.Start(t.Context())).To(Succeed())
	first := process.PID()
	g.Expect(process.Start(t.Context())).To(Succeed(), "starting a running process does nothing")
	g.Expect(process.PID()).To(Equal(first))

	g.Expect(process.Kill9()).To(Succeed())
	g.Expect(process.Wait(t.Context())).To(MatchError(ContainSubstring("killed")))
	g.Expect(process.PID()).To(BeZero())

	g.Expect(process.Restart(t.Context())).To(Succeed())
	g.Expect(process.Running()).To(BeTrue())
	g.Expect(process.Stop()).To(Succeed())
	g.Expect(process.Stop()).To(Succeed(), "stopping a stopped process does nothing")
	g.Expect(process.Running()).To(BeFalse())
}

func TestRacesOfProcesses(t *testing.T) {
	for name, test := range map[string]struct {
		race bool
		text string
		want string
	}{
		"a race":                       {true, `printf "WARNING: DATA RACE\\nWrite at 0x1\\n"; exec sleep 1000`, "Write at 0x1"},
		"no race":                      {true, "echo started; exec sleep 1000", ""},
		"a program without a detector": {false, `echo "WARNING: DATA RACE"; exec sleep 1000`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			process := script(t, test.text, nil)
			process.spec.race, process.spec.ready = test.race, func(context.Context) error {
				if written, err := os.ReadFile(process.LogFile()); err != nil || !strings.HasSuffix(string(written), "\n") {
					return errors.New("nothing is written yet")
				}
				return nil
			}
			g.Expect(process.Start(t.Context())).To(Succeed())
			g.Expect(process.Stop()).To(Succeed())
			if test.want == "" {
				g.Expect(process.raceFound()).To(Succeed())
			} else {
				g.Expect(process.raceFound()).To(MatchError(And(HavePrefix("script has a data race:"), ContainSubstring(test.want))))
			}
			g.Expect(os.Remove(process.LogFile())).To(Succeed())
			g.Expect(process.raceFound()).To(Succeed(), "nothing is left of a control plane that was stopped before")
		})
	}
}

// A kill -9 of the process that owns a control plane gives it no chance to clean up.
func TestCrashLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "controlplane")
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), crashVariable+"="+dir)
	out, err := owner.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(owner.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	child, err := strconv.Atoi(strings.TrimSpace(line))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(alive(child)).To(BeTrue())
	g.Expect(dir).To(BeADirectory())

	g.Expect(owner.Process.Kill()).To(Succeed())
	g.Expect(owner.Wait()).NotTo(Succeed())
	g.Eventually(func() bool { return alive(child) }, goneTimeout).Should(BeFalse())
	g.Eventually(dir, goneTimeout).ShouldNot(BeADirectory())
}

func TestFolderWithFilesIsRefused(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600)).To(Succeed())
	_, err := newControlPlane(Options{Dir: dir})
	g.Expect(err).To(MatchError(ContainSubstring("not empty")))
	g.Expect(filepath.Join(dir, "mine")).To(BeAnExistingFile())
}

func TestOverrideFlags(t *testing.T) {
	g := NewWithT(t)
	got := overrideFlags(
		[]string{"--leader-elect", "--v=2", "--health-addr=:9440"}, []string{"--leader-elect=true", "--health-addr=127.0.0.1:1"},
	)
	g.Expect(got).To(Equal([]string{"--v=2", "--leader-elect=true", "--health-addr=127.0.0.1:1"}))
}

// alive says whether a process exists and is no zombie: an orphan is a zombie until init has collected it.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, state, found := strings.Cut(string(stat), ") ")
	return found && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
