// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	// managementPrefix is where the management cluster's objects are in etcd.
	managementPrefix = "/registry"
)

// auditedGroup marks the managers under test in the audit policy; no role is bound to it.
const auditedGroup = "localcontrolplane:managers"

// auditPolicy records who wrote which object with what result, what the managers under test read, and no contents: enough to count writes
// and to compare the managers' roles with what they do.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["` + auditedGroup + `"]
- level: None
  verbs: [get, list, watch]
- level: Metadata
`

// Options are the settings of a control plane. The zero value is a good one.
type Options struct {
	// Dir is where all files go: certificates, kubeconfigs, etcd's data, logs/. It is made when missing, must be empty,
	// and is removed at the end. Default: a new folder in os.TempDir().
	Dir string
	// KeepDir leaves Dir behind, also after a crash.
	KeepDir bool
	// Tools gives the programs. Default: NewTools(Progress).
	Tools *Tools
	// Progress gets a line when a program is built and when a process is up. Default: no output.
	Progress io.Writer
	// StartTimeout is how long each process may take until it is ready. Default: 2 min, enough for a loaded machine.
	StartTimeout time.Duration
	// ServerEnv is the environment of etcd and kube-apiserver, as "GOGC=400", besides PATH and HOME. Default: nothing.
	ServerEnv []string
}

// ControlPlane is a running management cluster. Its methods are safe for concurrent use.
type ControlPlane struct {
	tools    *Tools
	dir      string
	progress io.Writer
	timeout  time.Duration
	// serverEnv is Options.ServerEnv.
	serverEnv []string
	janitor   *janitor // nil with KeepDir
	etcd      *etcd
	api       *APIServer
	admin     string // path of the admin kubeconfig

	mu        sync.Mutex
	processes []*Process // in the order of their first start
	webhooks  map[string]*webhookEndpoint
}

// Start brings up etcd, kube-apiserver and kube-controller-manager and returns when all three are ready. ctx bounds the
// start only; end the control plane with Stop. When Start fails, everything it started has been removed again, and the
// error has the last lines of the failing process's log.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	cp, err := newControlPlane(opts)
	if err != nil {
		return nil, err
	}
	if err := cp.startAll(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

func newControlPlane(opts Options) (*ControlPlane, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	if opts.StartTimeout == 0 {
		opts.StartTimeout = defaultStartTimeout
	}
	if opts.Tools == nil {
		tools, err := NewTools(opts.Progress)
		if err != nil {
			return nil, err
		}
		opts.Tools = tools
	}
	dir, err := workDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{
		tools: opts.Tools, dir: dir, progress: opts.Progress, timeout: opts.StartTimeout, serverEnv: opts.ServerEnv,
		webhooks: map[string]*webhookEndpoint{},
	}
	if opts.KeepDir {
		return cp, nil
	}
	cp.janitor, err = startJanitor(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return cp, nil
}

// workDir returns an empty folder with an absolute path. A folder with files is refused, because it will be removed.
func workDir(dir string) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "localcontrolplane-")
		if err != nil {
			return "", fmt.Errorf("cannot make a folder for the control plane: %w", err)
		}
		dir = made
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot resolve the control plane's folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the control plane's folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("cannot read the control plane's folder: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("folder %s is not empty: choose another one, the control plane's folder is removed at the end", dir)
	}
	return dir, os.Mkdir(filepath.Join(dir, "logs"), 0o700)
}

func (cp *ControlPlane) startAll(ctx context.Context) error {
	var err error
	if cp.etcd, err = cp.newEtcd(ctx); err != nil {
		return err
	}
	if err := cp.start(ctx, cp.etcd.Process); err != nil {
		return err
	}
	policy := filepath.Join(cp.dir, "audit-policy.yaml")
	if err := writeFile(policy, []byte(auditPolicy)); err != nil {
		return err
	}
	cp.api, err = cp.newAPIServer(ctx, apiServerName, APIServerOptions{EtcdPrefix: managementPrefix},
		// Kubernetes on OpenShift runs with it; the managers' roles must be good enough for it.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--audit-policy-file="+policy, "--audit-log-path="+cp.AuditLog(), "--audit-log-format=json",
		"--audit-log-maxsize=10000", // MB: a rotated log would be a lost one
	)
	if err != nil {
		return err
	}
	if err := cp.start(ctx, cp.api.Process); err != nil {
		return err
	}
	if cp.admin, err = cp.Kubeconfig(adminUser, adminGroup); err != nil {
		return err
	}
	controllers, err := cp.newControllerManager(ctx)
	if err != nil {
		return err
	}
	return cp.start(ctx, controllers)
}

// Stop ends every process, the last one started first, and removes the control plane's folder. Calling it again does
// nothing.
func (cp *ControlPlane) Stop() error {
	cp.mu.Lock()
	processes := slices.Clone(cp.processes)
	cleaner := cp.janitor
	cp.janitor = nil
	cp.mu.Unlock()
	var errs []error
	for _, process := range slices.Backward(processes) {
		errs = append(errs, process.Stop(), process.raceFound())
	}
	if cleaner != nil {
		errs = append(errs, cleaner.clean())
	}
	return errors.Join(errs...)
}

// Dir returns the folder with all files of this control plane; logs are in logs/<process>.log.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Tools returns the programs this control plane runs with, such as kubectl and clusterctl for its users.
func (cp *ControlPlane) Tools() *Tools { return cp.tools }

// Admin returns a client configuration with cluster-admin rights.
func (cp *ControlPlane) Admin() *rest.Config { return cp.api.Config() }

// AdminKubeconfig returns the path of a kubeconfig file with cluster-admin rights.
func (cp *ControlPlane) AdminKubeconfig() string { return cp.admin }

// AuditLog returns the path of the apiserver's audit log: one JSON event (audit.k8s.io/v1, level Metadata) a line for
// every request that is not a read, and for every read of a manager of StartManager, written when the request has been
// answered.
func (cp *ControlPlane) AuditLog() string { return filepath.Join(cp.dir, "logs", "audit.log") }

// Process returns a process by name: etcd, kube-apiserver, kube-controller-manager, capi-core, kube-apiserver-<name> of
// StartAPIServer, or the name of a ManagerSpec.
func (cp *ControlPlane) Process(name string) (*Process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	for _, process := range cp.processes {
		if process.Name() == name {
			return process, nil
		}
	}
	return nil, fmt.Errorf("no process %q was started", name)
}

// Restart stops a process and starts it again with the same command line; it returns when the process is ready.
func (cp *ControlPlane) Restart(ctx context.Context, name string) error {
	process, err := cp.Process(name)
	if err != nil {
		return err
	}
	return process.Restart(ctx)
}

// Kill kills a process (SIGKILL) and returns when it has ended. Start it again with Restart.
func (cp *ControlPlane) Kill(name string) error {
	process, err := cp.Process(name)
	if err != nil {
		return err
	}
	return process.Kill9()
}

// newProcess completes a spec with what all processes of this control plane have in common.
func (cp *ControlPlane) newProcess(spec processSpec) *Process {
	spec.logFile = filepath.Join(cp.dir, "logs", spec.name+".log")
	spec.timeout = cp.timeout
	return &Process{spec: spec}
}

// start registers a process, so that Stop ends it, and starts it. One that does not start is forgotten again, and so is a stopped one of
// the same name.
func (cp *ControlPlane) start(ctx context.Context, process *Process) error {
	started := time.Now()
	if err := cp.register(process); err != nil {
		return err
	}
	if err := process.Start(ctx); err != nil {
		cp.mu.Lock()
		defer cp.mu.Unlock()
		cp.processes = slices.DeleteFunc(cp.processes, func(p *Process) bool { return p == process })
		return err
	}
	fmt.Fprintf(cp.progress, "%s is up (%s)\n", process.Name(), time.Since(started).Round(readyInterval))
	return nil
}

func (cp *ControlPlane) register(process *Process) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if slices.ContainsFunc(cp.processes, func(p *Process) bool { return p.Name() == process.Name() && p.Running() }) {
		return fmt.Errorf("process %q exists already: use Restart, or choose another name", process.Name())
	}
	cp.processes = slices.DeleteFunc(cp.processes, func(p *Process) bool { return p.Name() == process.Name() })
	cp.processes = append(cp.processes, process)
	return nil
}
