// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// Faults makes things go wrong, before a host or cluster exists or while it lives. All methods may be called at any time
// from any goroutine. A host is named by its BareMetalHost (or the key given to BootHost), a cluster by its
// AgentClusterInstall.
type Faults struct{ s *Simulator }

// Faults returns the simulator's faults.
func (s *Simulator) Faults() Faults { return Faults{s} }

func (f Faults) change(fn func(b *backend)) {
	f.s.backend.mu.Lock()
	defer f.s.backend.mu.Unlock()
	fn(f.s.backend)
}

// HostNeverBoots keeps a host from ever registering, until it is called with false: then it boots at last.
func (f Faults) HostNeverBoots(host HostKey, on bool) {
	f.change(func(b *backend) { b.faults.of(host).neverBoots = on })
}

// BootsFail makes the next n boots of a host's discovery image fail: it is on and never registers, until it is power-cycled.
func (f Faults) BootsFail(host HostKey, n int) {
	f.change(func(b *backend) { b.faults.of(host).failedBoots = n })
}

// HostDies cuts the power of a host for ever: it stays off, also when its BareMetalHost is switched on.
func (f Faults) HostDies(host HostKey) {
	f.change(func(b *backend) {
		b.faults.of(host).neverBoots = true
		b.cutPower(b.machines[host])
	})
}

// WrongBootOrder lets a host boot the discovery image again after its installation, while on.
func (f Faults) WrongBootOrder(host HostKey, on bool) {
	f.change(func(b *backend) { b.faults.of(host).wrongBootOrder = on })
}

// Disconnect silences a host's agent while on: its heartbeats stop although it runs.
func (f Faults) Disconnect(host HostKey, on bool) {
	f.change(func(b *backend) {
		if m := b.machines[host]; m != nil {
			m.silent = on
		}
	})
}

// StageHang keeps a host in an installation stage, or in the state preparing-for-installation before the first. An empty
// stage lifts it.
func (f Faults) StageHang(host HostKey, stage string) {
	f.change(func(b *backend) { b.faults.of(host).hangStage = stage })
}

// InstallFails makes a host's installation fail, once, when it enters a stage.
func (f Faults) InstallFails(host HostKey, stage, message string) {
	f.change(func(b *backend) {
		faults := b.faults.of(host)
		faults.failStage, faults.failMessage = stage, message
	})
}

// PreparationFails makes the next n preparations of a host fail, as when an image cannot be pulled.
func (f Faults) PreparationFails(host HostKey, n int) {
	f.change(func(b *backend) { b.faults.of(host).prepareFails = n })
}

// HostValidationFails makes a host's check id fail with a message, until it is called with an empty one.
func (f Faults) HostValidationFails(host HostKey, id, message string) {
	f.change(func(b *backend) { setOrDelete(b.faults.of(host).validations, id, message) })
}

// ClusterValidationFails makes a cluster's check id fail with a message, until it is called with an empty one.
func (f Faults) ClusterValidationFails(aci types.NamespacedName, id, message string) {
	f.change(func(b *backend) {
		if b.faults.clusters[aci] == nil {
			b.faults.clusters[aci] = map[string]string{}
		}
		setOrDelete(b.faults.clusters[aci], id, message)
	})
}

// ManifestsFail keeps the service from making the ignition and the manifests of a cluster, with what the installer says of it, until it is
// called with an empty message. The preparation of the installation fails for as long, and begins anew (ASSISTED 3.10).
func (f Faults) ManifestsFail(aci types.NamespacedName, message string) {
	f.change(func(b *backend) { setOrDelete(b.faults.manifests, aci, message) })
}

// FinalizingFails makes the operators of a cluster fail to come up once its hosts are installed, until it is called with an empty message:
// the service gives the cluster up with the message, and turns all its hosts to errors, although they are installed and run.
func (f Faults) FinalizingFails(aci types.NamespacedName, message string) {
	f.change(func(b *backend) { setOrDelete(b.faults.operators, aci, message) })
}

// FinalizingHangs keeps the operators of a cluster from coming up, until it is called with false: the state finalizing lasts as long, at
// most until the service gives the cluster up.
func (f Faults) FinalizingHangs(aci types.NamespacedName, on bool) {
	f.change(func(b *backend) { b.faults.hanging[aci] = on })
}

func setOrDelete[K comparable](m map[K]string, key K, value string) {
	if value == "" {
		delete(m, key)
		return
	}
	m[key] = value
}

// KubeconfigLate delays the kubeconfig Secret of a cluster by d after the state installing.
func (f Faults) KubeconfigLate(aci types.NamespacedName, d time.Duration) {
	f.change(func(b *backend) { b.faults.kubeconfigDelay[aci] = d })
}

// ServiceDown stops the service for d: no status is written and no host can register or report. Its database survives,
// so ServiceDown is also a restart.
func (f Faults) ServiceDown(d time.Duration) {
	f.change(func(b *backend) { b.faults.downUntil = b.now().Add(d) })
}

// ServiceUp ends ServiceDown before its time.
func (f Faults) ServiceUp() {
	f.change(func(b *backend) { b.faults.downUntil = b.now() })
}

// Away takes the service and its webhooks away, as if its namespace was gone, until it is called with false. They are Deployments of their
// own, so that ServiceDown leaves the webhooks. Who serves them asks IsAway.
func (f Faults) Away(on bool) {
	f.change(func(b *backend) { b.faults.away = on })
}

// IsAway tells whether the service is away with its webhooks.
func (f Faults) IsAway() bool {
	var away bool
	f.change(func(b *backend) { away = b.faults.away })
	return away
}

// ISORotate gives an InfraEnv a new ISO URL. Earlier ones stay valid.
func (f Faults) ISORotate(infraEnv types.NamespacedName) {
	f.change(func(b *backend) {
		if env := b.infraEnvs[infraEnv]; env != nil {
			b.rotate(env)
		}
	})
	f.s.enqueueInfraEnv(infraEnv)
}

// AgentVanishes deletes the Agent of a host that has not joined, as somebody else might. The host freezes at its next poll and registers
// again when it is rebooted, which it is after rebootAfter; zero leaves it frozen.
func (f Faults) AgentVanishes(ctx context.Context, host HostKey, rebootAfter time.Duration) error {
	key, ok := f.s.AgentOf(host)
	if !ok {
		return fmt.Errorf("host %s has no Agent that could vanish: boot it first", host)
	}
	// Forgotten before the Agent goes: afterwards, a machine that somebody has rebooted may have registered again by that name.
	f.change(func(b *backend) { delete(b.hosts, key.Name) })
	agent := &aiv1.Agent{}
	agent.Namespace, agent.Name = key.Namespace, key.Name
	if err := f.s.client.Delete(ctx, agent); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete Agent %s: %w", key, err)
	}
	f.change(func(b *backend) {
		if m := b.machines[host]; m != nil && rebootAfter > 0 {
			m.mode, m.due = machineBooting, b.now().Add(rebootAfter)
		}
	})
	return nil
}
