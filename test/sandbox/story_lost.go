// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// lastLoss is after how many losses of its AgentClusterInstall no attempt of an installation begins by itself.
const lastLoss = 4

// lossSteps install another cluster, whose AgentClusterInstall somebody deletes again and again.
func (r *run) lossSteps() []step {
	steps := []step{
		{"delete the cluster that was installed", r.delete},
		{"apply the template again", func(ctx context.Context) error { return r.world.ApplyCluster(ctx, r.request) }},
	}
	for attempt := 1; attempt <= lastLoss; attempt++ {
		steps = append(steps, step{
			fmt.Sprintf("delete the AgentClusterInstall of attempt %d", attempt),
			func(ctx context.Context) error { return r.loseInstall(ctx, attempt) },
		})
	}
	return append(steps, step{"await that nothing begins by itself", r.verifyExhausted})
}

// loseInstall deletes the AgentClusterInstall while an attempt installs its hosts, and waits for the next one.
func (r *run) loseInstall(ctx context.Context, attempt int) error {
	if err := r.awaitInstalling(ctx, attempt); err != nil {
		return err
	}
	name := InstallKey(r.cluster).Name
	r.narrator.printf("somebody deletes AgentClusterInstall %s during attempt %d", name, attempt)
	if _, err := r.world.Kubectl(ctx, "delete", "agentclusterinstall", name, "-n", r.cluster.Namespace, "--wait=false"); err != nil {
		return err
	}
	vanished := fmt.Sprintf("AgentClusterInstall %s vanished during attempt %d of the installation", name, attempt)
	switch attempt {
	case 1: // The second attempt begins at once.
	case lastLoss:
		return r.awaitInstalled(ctx, controlplanev1.RetriesExhaustedReason, vanished+", and so it was in the attempts before: find out who "+
			"deletes it. To install again, set annotation "+controlplanev1.RetryInstallationAnnotation)
	default:
		if err := r.awaitLapse(ctx, vanished, firstWait<<(attempt-2)); err != nil { // The second loss is the first to wait.
			return err
		}
	}
	return r.awaitAttempt(ctx, attempt+1)
}

// awaitLapse waits until the control plane says when the next attempt begins, and lets that time pass.
func (r *run) awaitLapse(ctx context.Context, vanished string, wait time.Duration) error {
	if err := r.awaitInstalled(ctx, controlplanev1.RetryWaitingReason, vanished+": the next attempt begins at "); err != nil {
		return err
	}
	began, err := r.recorded(ctx, controlplanev1.LostInstallationsAnnotation, "last")
	if err != nil {
		return err
	}
	if err := r.verifyWait(ctx, began.Add(wait)); err != nil {
		return err
	}
	return r.lapse(ctx, controlplanev1.LostInstallationsAnnotation, "last", wait)
}

// awaitInstalling waits until an attempt installs its hosts.
func (r *run) awaitInstalling(ctx context.Context, attempt int) error {
	what := fmt.Sprintf("attempt %d to install its hosts", attempt)
	return r.await(ctx, installTimeout, what, func(ctx context.Context) (string, error) {
		controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
		if err := r.world.Client.Get(ctx, InstallKey(r.cluster), controlPlane); err != nil {
			return "there is no control plane", client.IgnoreNotFound(err)
		}
		install := controlPlane.Status.Install
		if int(ptr.Deref(install.Attempt, 0)) == attempt && install.Phase == controlplanev1.InstallPhaseInstalling {
			return "", nil
		}
		return fmt.Sprintf("attempt %d is in phase %s", ptr.Deref(install.Attempt, 0), install.Phase), nil
	})
}

// verifyExhausted checks for a while that no further attempt begins.
func (r *run) verifyExhausted(ctx context.Context) error {
	over := time.Now().Add(finalSilence)
	return pollUntil(ctx, 2*finalSilence, "the time to be over", func(ctx context.Context) (string, error) {
		controlPlane, err := r.world.controlPlaneOf(ctx, r.cluster)
		if err != nil {
			return "", err
		}
		install := controlPlane.Status.Install
		if attempt := int(ptr.Deref(install.Attempt, 0)); attempt != lastLoss || !install.NextRetryTime.IsZero() {
			return "", fmt.Errorf("no attempt after %d is to begin by itself, and attempt %d has begun or begins at %s", lastLoss, attempt,
				install.NextRetryTime)
		}
		if left := time.Until(over); left > 0 {
			return fmt.Sprintf("%s are left", left.Round(time.Second)), nil
		}
		return "", nil
	})
}
