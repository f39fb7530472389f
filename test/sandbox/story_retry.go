// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

const (
	// retries is how many attempts the user lets begin by themselves.
	retries = 2
	// firstWait is how long the control plane provider waits before the second attempt; before each later one it waits twice as long.
	firstWait = 10 * time.Minute
	// retryGrace is for how long after it has begun the control plane provider starts no other attempt, since it may not have heard from the
	// cluster yet: the shortest that it accepts. It is the same at every speed.
	retryGrace = 2 * time.Minute
	// finalSilence is for how long nothing may begin by itself when no attempt is left.
	finalSilence = 15 * time.Second
)

// breakFirstHost keeps the first control-plane host from registering, and lets its installation fail.
func breakFirstHost(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		s.World.Assisted.Faults().HostNeverBoots(host, true)
		s.World.Assisted.Faults().InstallFails(host, simassisted.StageWritingImage, installMessage)
	})
}

// retrySteps follow an installation that fails twice and succeeds with the third attempt.
func (r *run) retrySteps() []step {
	steps := []step{
		{fmt.Sprintf("allow %d retries, and %d seconds to register", retries, registrationSeconds), r.allowRetries},
		{"await a host that never registers", r.awaitGivenUp},
	}
	for attempt := 1; attempt <= retries; attempt++ {
		steps = append(steps,
			step{fmt.Sprintf("await the failure of attempt %d", attempt), func(ctx context.Context) error { return r.awaitFailure(ctx, attempt) }},
			step{fmt.Sprintf("await attempt %d", attempt+1), func(ctx context.Context) error { return r.awaitRetry(ctx, attempt) }},
		)
	}
	return steps
}

func (r *run) allowRetries(ctx context.Context) error {
	return r.patchControlPlane(ctx, fmt.Sprintf(`{"spec":{"install":{"retries":%d,"hostRegistrationTimeoutSeconds":%d}}}`, retries,
		registrationSeconds))
}

// awaitGivenUp waits until a host was power-cycled once and given up, and lets somebody mend it.
func (r *run) awaitGivenUp(ctx context.Context) error {
	report := aboutVictim(" was booted at ", " and power-cycled at ",
		"(attempt 2 of 2): look at the host's console, its boot medium and its network")
	if err := r.awaitDescription(ctx, "the host to be given up", func() []string { return report(r.scene) }); err != nil {
		return err
	}
	if err := r.showCluster(ctx); err != nil {
		return err
	}
	machine, err := r.scene.victimMachine(ctx)
	if err != nil {
		return err
	}
	for reason, count := range map[string]int{bootstrapv1.EventHostRebooted: 1, bootstrapv1.EventHostNeverRegistered: 1} {
		if err := r.verifyEvents(ctx, reason, machine.Spec.Bootstrap.ConfigRef.Name, count); err != nil {
			return err
		}
	}
	r.narrator.printf("BareMetalHost %s was power-cycled once; somebody mends it now", r.scene.Victim().Name)
	r.world.Assisted.Faults().HostNeverBoots(r.scene.Victim(), false)
	return nil
}

// verifyEvents waits until an object has so many events with a reason, which are written some time after what they tell of. More of them
// are an error.
func (r *run) verifyEvents(ctx context.Context, reason, name string, want int) error {
	what := fmt.Sprintf("%d events %s of %s", want, reason, name)
	return pollUntil(ctx, r.slower(settleTimeout), what, func(ctx context.Context) (string, error) {
		count, err := r.countEvents(ctx, reason, name)
		switch {
		case err != nil:
			return "", err
		case count > want:
			return "", fmt.Errorf("there are %d", count)
		case count < want:
			return fmt.Sprintf("there are %d", count), nil
		}
		return "", nil
	})
}

// countEvents is how many events with a reason an object has.
func (r *run) countEvents(ctx context.Context, reason, name string) (int, error) {
	list := &eventsv1.EventList{}
	if err := r.world.Client.List(ctx, list, client.InNamespace(r.cluster.Namespace)); err != nil {
		return 0, fmt.Errorf("cannot list the events: %w", err)
	}
	count := 0
	for i := range list.Items {
		event := &list.Items[i]
		if event.Reason != reason || event.Regarding.Name != name {
			continue
		}
		if event.Series == nil {
			count++
			continue
		}
		count += int(event.Series.Count) // The first event of the series is one of them.
	}
	return count, nil
}

// awaitFailure waits until an attempt has failed, and the control plane says when the next one begins.
func (r *run) awaitFailure(ctx context.Context, attempt int) error {
	if err := r.silence(ctx, attempt); err != nil {
		return err
	}
	err := r.awaitInstalled(ctx, controlplanev1.RetryWaitingReason, installMessage, fmt.Sprintf("(attempt %d of %d; the next begins at ",
		attempt, retries+1))
	if err != nil {
		return err
	}
	failed, err := r.recorded(ctx, controlplanev1.InstallationFailedAnnotation, "time")
	if err != nil {
		return err
	}
	return r.verifyWait(ctx, failed.Add(firstWait<<(attempt-1)))
}

// silence keeps the API of a cluster from answering during an attempt, after which none would begin by itself: its hosts fail a second
// after the simulated API has begun to start, which answers in time on some machines.
func (r *run) silence(ctx context.Context, attempt int) error {
	key := InstallKey(r.cluster)
	what := fmt.Sprintf("attempt %d to install its hosts", attempt)
	return pollUntil(ctx, r.slower(installTimeout), what, func(ctx context.Context) (string, error) {
		install := &hiveext.AgentClusterInstall{}
		if err := r.world.Client.Get(ctx, key, install); err != nil {
			return "there is no AgentClusterInstall", client.IgnoreNotFound(err)
		}
		if install.Annotations[controlplanev1.InstallAttemptAnnotation] != strconv.Itoa(attempt) {
			return "there is the AgentClusterInstall of another attempt", nil
		}
		missing := ""
		if err := r.world.Workload.Down(key, 0); err != nil {
			missing = err.Error()
		}
		phase := assisted.PhaseOf(install) // Until it installs, what was silenced may be the cluster of the attempt before.
		if phase != assisted.PhaseInstalling && phase != assisted.PhaseFailed {
			missing = fmt.Sprintf("it is in phase %v", phase)
		}
		return missing, nil
	})
}

// awaitRetry ends the wait for the next attempt, and waits until that has begun.
func (r *run) awaitRetry(ctx context.Context, attempt int) error {
	stage := simassisted.StageWritingImage
	if attempt == retries {
		stage = "" // The last attempt succeeds.
	}
	if err := r.failAll(ctx, stage); err != nil {
		return err
	}
	wait := firstWait << (attempt - 1)
	if err := r.lapse(ctx, controlplanev1.InstallationFailedAnnotation, "time", wait); err != nil {
		return err
	}
	if err := r.awaitAttempt(ctx, attempt+1); err != nil {
		return err
	}
	return r.verifyEvents(ctx, controlplanev1.EventRetryStarted, InstallKey(r.cluster).Name, attempt)
}

// failAll lets the next installation of every host fail in a stage, since nobody knows which of them the control plane gets; of none when
// the stage is empty.
func (r *run) failAll(ctx context.Context, stage string) error {
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := r.world.Client.List(ctx, hosts, client.InNamespace(r.cluster.Namespace)); err != nil {
		return fmt.Errorf("cannot list the BareMetalHosts: %w", err)
	}
	for i := range hosts.Items {
		r.world.Assisted.Faults().InstallFails(client.ObjectKeyFromObject(&hosts.Items[i]), stage, installMessage)
	}
	return nil
}

// awaitInstalled waits until the condition Installed of the control plane has a reason, and its message all the texts.
func (r *run) awaitInstalled(ctx context.Context, reason string, texts ...string) error {
	err := r.await(ctx, installTimeout, "the reason "+reason, func(ctx context.Context) (string, error) {
		controlPlane, err := r.world.controlPlaneOf(ctx, r.cluster)
		if err != nil {
			return "", err
		}
		said := conditionText(controlPlane, controlplanev1.InstalledCondition)
		if conditions.GetReason(controlPlane, controlplanev1.InstalledCondition) != reason {
			return said, nil
		}
		for _, text := range texts {
			if !strings.Contains(said, text) {
				return fmt.Sprintf("it does not say %q: %s", text, said), nil
			}
		}
		r.narrator.printf("OpenshiftAssistedControlPlane %s %s", controlPlane.Name, said)
		return "", nil
	})
	if err != nil {
		return err
	}
	return r.showCluster(ctx)
}

// verifyWait checks that the control plane says when the next attempt begins.
func (r *run) verifyWait(ctx context.Context, want time.Time) error {
	controlPlane, err := r.world.controlPlaneOf(ctx, r.cluster)
	if err != nil {
		return err
	}
	next := controlPlane.Status.Install.NextRetryTime.Time
	said := conditions.GetMessage(controlPlane, controlplanev1.InstalledCondition)
	if !next.Equal(want) || !strings.Contains(said, want.UTC().Format(time.RFC3339)) {
		return fmt.Errorf("the next attempt is to begin at %s, status.install.nextRetryTime is %s, and the condition says: %s", want.UTC(),
			next.UTC(), said)
	}
	return nil
}

// awaitAttempt waits until the installation has begun anew, for which the control plane provider may not have run for long enough yet.
func (r *run) awaitAttempt(ctx context.Context, attempt int) error {
	what := fmt.Sprintf("attempt %d", attempt)
	return r.await(ctx, retryGrace+settleTimeout, what, func(ctx context.Context) (string, error) {
		controlPlane, err := r.world.controlPlaneOf(ctx, r.cluster)
		if err != nil {
			return "", err
		}
		if now := ptr.Deref(controlPlane.Status.Install.Attempt, 0); int(now) != attempt {
			return fmt.Sprintf("status.install.attempt is %d: %s", now, conditionText(controlPlane, controlplanev1.InstalledCondition)), nil
		}
		r.narrator.printf("attempt %d begins", attempt)
		return "", nil
	})
}

// record is the JSON of an annotation of the control plane.
func (r *run) record(ctx context.Context, annotation string) (map[string]any, error) {
	controlPlane, err := r.world.controlPlaneOf(ctx, r.cluster)
	if err != nil {
		return nil, err
	}
	record := map[string]any{}
	if err := json.Unmarshal([]byte(controlPlane.Annotations[annotation]), &record); err != nil {
		return nil, fmt.Errorf("annotation %s of %s cannot be read: %w", annotation, controlPlane.Name, err)
	}
	return record, nil
}

// recorded is a time in such an annotation.
func (r *run) recorded(ctx context.Context, annotation, field string) (time.Time, error) {
	record, err := r.record(ctx, annotation)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, fmt.Sprint(record[field]))
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s has no time in %q: %w", annotation, field, err)
	}
	return at, nil
}

// lapse lets a wait of the control plane pass at once. It is counted from a time in an annotation, which is moved back: no field makes the
// wait shorter, and nobody watches a story for half an hour.
func (r *run) lapse(ctx context.Context, annotation, field string, wait time.Duration) error {
	from, err := r.recorded(ctx, annotation, field)
	if err != nil {
		return err
	}
	record, err := r.record(ctx, annotation)
	if err != nil {
		return err
	}
	record[field] = from.Add(-wait).UTC().Format(time.RFC3339)
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("annotation %s cannot be written: %w", annotation, err)
	}
	r.narrator.printf("annotation %s is moved back by %s, as if that time had passed", annotation, wait)
	_, err = r.world.Kubectl(ctx, "annotate", "openshiftassistedcontrolplane", InstallKey(r.cluster).Name, "-n", r.cluster.Namespace,
		"--overwrite", annotation+"="+string(value))
	return err
}
