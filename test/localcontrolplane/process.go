// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	defaultStartTimeout = 2 * time.Minute
	stopTimeout         = 10 * time.Second
	readyInterval       = 100 * time.Millisecond
	logTailLines        = 20

	// raceReport begins what the race detector writes about a race, which has some fifty lines.
	raceReport      = "WARNING: DATA RACE"
	raceReportLines = 60
)

// ErrNotRunning is returned when a signal is to be sent to a process that is not running.
var ErrNotRunning = errors.New("process is not running")

// processSpec is what a process is started with, every time.
type processSpec struct {
	name    string
	path    string
	args    []string
	env     []string
	logFile string
	// ready asks the process itself whether it can serve; nil error means yes.
	ready   func(ctx context.Context) error
	timeout time.Duration
	// race tells that the program has the race detector.
	race bool
}

// Process is one child process that can be ended and started again with the same command line. It counts as started only
// when its own health endpoint says so. It is safe for concurrent use.
type Process struct {
	spec processSpec

	lifecycle sync.Mutex // one Start or Stop at a time
	mu        sync.Mutex // guards run
	run       *run
}

// run is one life of a process.
type run struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // why it ended; read after done is closed
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Name returns the name by which ControlPlane.Process finds this process.
func (p *Process) Name() string { return p.spec.name }

// LogFile returns the path of the file with the process's standard output and error, of all its runs.
func (p *Process) LogFile() string { return p.spec.logFile }

// Start starts the process and returns when it answers its readiness check. When it ends or is not ready in time, it is
// killed, and the error has the last lines of its log. It does nothing when the process runs already.
func (p *Process) Start(ctx context.Context) error {
	p.lifecycle.Lock()
	defer p.lifecycle.Unlock()
	if p.Running() {
		return nil
	}
	current, err := p.launch()
	if err != nil {
		return err
	}
	var notReady error
	err = wait.PollUntilContextTimeout(ctx, readyInterval, p.spec.timeout, true, func(ctx context.Context) (bool, error) {
		if current.ended() {
			return false, fmt.Errorf("it ended before it was ready: %v", current.cmd.ProcessState)
		}
		notReady = p.spec.ready(ctx)
		return notReady == nil, nil
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s did not start: %w", p.spec.name, errors.Join(err, notReady))
	err = fmt.Errorf("%w\nlast lines of %s:\n%s", err, p.spec.logFile, p.logTail())
	return errors.Join(err, p.end(current, syscall.SIGKILL))
}

// launch starts the process without waiting for it to be ready.
func (p *Process) launch() (*run, error) {
	log, err := os.OpenFile(p.spec.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of %s: %w", p.spec.name, err)
	}
	defer func() { _ = log.Close() }() // The child has its own handle.
	cmd := exec.Command(p.spec.path, p.spec.args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, p.spec.env...)
	for _, name := range []string{"GOGC", "GODEBUG", "GORACE"} { // The Makefile sets them for tests.
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := spawn(cmd); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", p.spec.name, err)
	}
	current := &run{cmd: cmd, done: make(chan struct{})}
	go func() {
		current.err = cmd.Wait()
		close(current.done)
	}()
	p.mu.Lock()
	p.run = current
	p.mu.Unlock()
	return current, nil
}

// Stop asks the process to end (SIGTERM), kills it after 10 s, and returns when it has ended. It does nothing when the
// process does not run.
func (p *Process) Stop() error {
	p.lifecycle.Lock()
	defer p.lifecycle.Unlock()
	current := p.current()
	if current == nil || current.ended() {
		return nil
	}
	return p.end(current, syscall.SIGTERM)
}

// Kill9 kills the process (SIGKILL), as a crash of the machine would, and returns when it has ended.
func (p *Process) Kill9() error {
	current := p.current()
	if current == nil || current.ended() {
		return fmt.Errorf("cannot kill %s: %w", p.spec.name, ErrNotRunning)
	}
	return p.end(current, syscall.SIGKILL)
}

// Restart stops the process and starts it again with the same command line; see Stop and Start.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Signal sends a signal to the process. It fails with ErrNotRunning when the process does not run.
func (p *Process) Signal(signal os.Signal) error {
	current := p.current()
	if current == nil || current.ended() {
		return fmt.Errorf("cannot signal %s: %w", p.spec.name, ErrNotRunning)
	}
	if err := current.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("cannot signal %s: %w", p.spec.name, err)
	}
	return nil
}

// Ready asks the process itself whether it can serve now, as Start does; nil means yes.
func (p *Process) Ready(ctx context.Context) error { return p.spec.ready(ctx) }

// Running says whether the process exists now. It says nothing about readiness.
func (p *Process) Running() bool {
	current := p.current()
	return current != nil && !current.ended()
}

// Wait returns when the process has ended, with the error of exec.Cmd.Wait, or with ctx's error when ctx is done first.
// It returns ErrNotRunning when the process was never started.
func (p *Process) Wait(ctx context.Context) error {
	current := p.current()
	if current == nil {
		return fmt.Errorf("cannot wait for %s: %w", p.spec.name, ErrNotRunning)
	}
	select {
	case <-current.done:
		return current.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PID returns the process ID, or 0 when the process does not run.
func (p *Process) PID() int {
	current := p.current()
	if current == nil || current.ended() {
		return 0
	}
	return current.cmd.Process.Pid
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// end signals the process, waits, and kills its whole group when it does not obey in time.
func (p *Process) end(current *run, signal syscall.Signal) error {
	pid := current.cmd.Process.Pid
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot end %s: %w", p.spec.name, err)
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-current.done:
		return nil
	case <-timer.C:
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot kill %s: %w", p.spec.name, err)
	}
	<-current.done
	return nil
}

// raceFound is an error with the first race that the race detector has found in the process, of all its runs; nil when its log has been
// removed.
func (p *Process) raceFound() error {
	if !p.spec.race {
		return nil
	}
	data, err := os.ReadFile(p.spec.logFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look for races in the log of %s: %w", p.spec.name, err)
	}
	_, report, found := strings.Cut(string(data), raceReport)
	if !found {
		return nil
	}
	lines := strings.Split(report, "\n")
	return fmt.Errorf("%s has a data race:%s", p.spec.name, strings.Join(lines[:min(raceReportLines, len(lines))], "\n"))
}

func (p *Process) logTail() string {
	data, err := os.ReadFile(p.spec.logFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}
