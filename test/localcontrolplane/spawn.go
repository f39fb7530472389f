// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

type spawnRequest struct {
	cmd     *exec.Cmd
	started chan error
}

// spawner starts every child from one thread that lives as long as this process: Linux ties a child's parent-death
// signal to the thread that started it, and the Go runtime may end any other thread at any time.
var spawner = sync.OnceValue(func() chan<- spawnRequest {
	requests := make(chan spawnRequest)
	go func() {
		runtime.LockOSThread()
		for request := range requests {
			request.started <- request.cmd.Start()
		}
	}()
	return requests
})

// spawn starts cmd as a child that the kernel kills when this process dies, in a process group of its own so that a
// Ctrl-C in the terminal reaches only this process.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	request := spawnRequest{cmd: cmd, started: make(chan error, 1)}
	spawner() <- request
	return <-request.started
}

// janitor is a process that outlives this one for a moment to remove its folder, however this one ended.
type janitor struct {
	cmd   *exec.Cmd
	alive io.Closer
}

// janitorScript waits until its standard input, which only our process holds open, is closed; then it removes the folder
// $1. Children that are being killed may still write there, hence the second and third try.
const janitorScript = `cat >/dev/null; for try in 1 2 3; do rm -rf -- "$1" && exit 0; sleep 1; done; exit 1`

func startJanitor(dir string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make the pipe of the process that removes %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the process that removes %s: %w", dir, err)
	}
	return &janitor{cmd: cmd, alive: alive}, nil
}

// clean has the folder removed now and returns when it is gone.
func (j *janitor) clean() error {
	_ = j.alive.Close()
	if err := j.cmd.Wait(); err != nil {
		return fmt.Errorf("could not remove %s: %w", j.cmd.Args[len(j.cmd.Args)-1], err)
	}
	return nil
}
