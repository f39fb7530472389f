// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// retryBackoff is how long after the first attempt has failed the second begins; each later one waits twice as long as the one before.
const retryBackoff = 10 * time.Minute

// Failed is what the annotation InstallationFailedAnnotation records.
type Failed struct {
	// Attempt is the number of the installation that has failed.
	Attempt string `json:"attempt"`
	// Time is when it was first seen to have failed.
	Time time.Time `json:"time"`
	// Answered: the API of its cluster has answered, before or since.
	Answered bool `json:"answered,omitempty"`
	// Installed: its control-plane hosts were installed. Status remembers it until the objects of the installation are gone, or moved.
	Installed bool `json:"installed,omitempty"`
}

// repairable: the cluster may be repairable, and may hold data.
func (f Failed) repairable() bool { return f.Answered || f.Installed }

// FailedOf returns the record of the wanted attempt; an empty one when there is none, or when somebody broke it: the wait then begins anew.
func FailedOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) Failed {
	var record Failed
	err := json.Unmarshal([]byte(controlPlane.Annotations[controlplanev1.InstallationFailedAnnotation]), &record)
	if err != nil || record.Attempt != view.Attempt(controlPlane) {
		return Failed{}
	}
	return record
}

// String is the annotation's value.
func (f Failed) String() string {
	value, err := json.Marshal(f)
	if err != nil {
		return "" // Strings, times and booleans can always be encoded.
	}
	return string(value)
}

// RetryDecision is about the attempt that begins by itself after one that has failed (DESIGN D35). Its zero value decides nothing: no
// attempt has failed, or the user wants none to begin by itself.
type RetryDecision struct {
	// Record is the value to write to InstallationFailedAnnotation; empty if it is up to date.
	Record string
	// Exhausted: as many attempts as spec.install.retries allows have begun.
	Exhausted bool
	// Blocked says why no attempt begins by itself; empty when Exhausted says it, and when one does.
	Blocked string
	// At is when the next attempt begins; zero when none does, and when it begins now.
	At time.Time
	// Now: the next attempt begins.
	Now bool
}

// DecideRetry decides whether the next attempt begins by itself.
func DecideRetry(v *view.View) RetryDecision {
	install, wanted := v.Install.AgentClusterInstall, view.Attempt(v.ControlPlane)
	if v.Life != view.Failed || !install.DeletionTimestamp.IsZero() || view.AttemptOf(install) != wanted {
		return RetryDecision{}
	}
	retries := int(ptr.Deref(v.ControlPlane.Spec.Install.Retries, 0))
	attempt := view.AttemptNumber(wanted)
	if attempt == 0 {
		if retries == 0 {
			return RetryDecision{}
		}
		return RetryDecision{Blocked: fmt.Sprintf("annotation %s is %q, which is no number", controlplanev1.InstallAttemptAnnotation, wanted)}
	}
	known := FailedOf(v.ControlPlane)
	failed := failedNow(v, known)
	if attempt > retries {
		// What makes the cluster repairable is recorded anyway: the user may allow more attempts when nobody can be asked any more.
		d := RetryDecision{Exhausted: retries > 0}
		if failed.repairable() != known.repairable() {
			d.Record = failed.String()
		}
		return d
	}
	d := RetryDecision{}
	if failed != known {
		d.Record = failed.String()
	}
	if d.Blocked = retryBlocked(v, failed); d.Blocked != "" {
		return d
	}
	at := failed.Time.Add(retryBackoff << (attempt - 1))
	if at.Before(v.Workload.SettledFrom) { // A manager that has just begun to act has not heard yet whether the API answers.
		at = v.Workload.SettledFrom
	}
	if d.Now = !at.After(v.Now); !d.Now {
		d.At = at
	}
	return d
}

// failedNow is what is to be recorded of the failure of the wanted attempt, which the record may know already.
func failedNow(v *view.View, known Failed) Failed {
	failed := known
	failed.Attempt, failed.Answered = view.Attempt(v.ControlPlane), known.Answered || v.Workload.Answered
	failed.Installed = known.Installed || ReachedFinalizing(v)
	if failed.Time.IsZero() {
		failed.Time = v.Now.UTC().Truncate(time.Second)
	}
	return failed
}

// retryBlocked says why no attempt begins by itself, whenever it is; empty when one may.
func retryBlocked(v *view.View, failed Failed) string {
	stopped := assisted.ClusterCondition(v.Install.AgentClusterInstall, hiveext.ClusterStoppedCondition)
	switch {
	case v.Initialized() || v.Record != nil:
		return "the cluster was installed"
	case failed.Answered:
		return "the API of the cluster has answered: the cluster may be repairable, and may hold data"
	case mayHoldData(v) != "":
		return mayHoldData(v)
	case ptr.Deref(v.ControlPlane.Spec.Install.HoldInstallation, false):
		return "spec.install.holdInstallation is true"
	case stopped != nil && stopped.Reason == hiveext.ClusterStoppedCanceledReason:
		return "somebody has cancelled the installation"
	case refusal(v) != "":
		return "assisted-service refuses what is installed, and would again: " + refusal(v)
	}
	return unfitHosts(v)
}

// refusal is what assisted-service says of a spec that it cannot use, or of checks on the cluster that fail; empty when it says nothing.
func refusal(v *view.View) string {
	for _, conditionType := range []hivev1.ClusterInstallConditionType{hiveext.ClusterSpecSyncedCondition, hiveext.ClusterValidatedCondition} {
		c := assisted.ClusterCondition(v.Install.AgentClusterInstall, conditionType)
		if c != nil && c.Status == corev1.ConditionFalse {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return ""
}

// unfitHosts says that there are too few hosts to install the control plane; empty when there are enough. A host that reports an error
// would fail again. The next attempt takes the hosts of this one, or others that Metal3 has, so that only Metal3 knows of more. Workers do
// not count, also where two of them are needed (ASSISTED 3.11): the host of a worker that reports an error is not provisioned for the next
// attempt, which begins without it after spec.install.workerWaitTimeoutSeconds, and needs no more workers than it begins with.
func unfitHosts(v *view.View) string {
	fit, problem := 0, ""
	machines := v.Machines.Owned.UnsortedList()
	slices.SortFunc(machines, func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range machines {
		config := v.Machines.Configs[m.Name]
		switch {
		case !living(m):
		case config != nil && conditions.IsFalse(config, bootstrapv1.HostHealthyCondition):
			problem = cmp.Or(problem, fmt.Sprintf("; Machine %s: %s", m.Name, conditions.GetMessage(config, bootstrapv1.HostHealthyCondition)))
		default:
			fit++
		}
	}
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	if fit >= replicas {
		return ""
	}
	return fmt.Sprintf("%d of %d control-plane Machines have a host without an error%s", fit, replicas, problem)
}
