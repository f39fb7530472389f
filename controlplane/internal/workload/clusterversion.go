// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/kube"
)

// The conditions of a ClusterVersion beside those that every operator has.
const (
	versionFailing         = "Failing"
	versionInvalid         = "Invalid"
	versionReleaseAccepted = "ReleaseAccepted"
	versionRecommended     = "Recommended"
)

// The ConfigMaps of what has to be acknowledged before a minor upgrade, and of what is.
const (
	gatesNamespace = "openshift-config-managed"
	gatesName      = "admin-gates"
	acksNamespace  = "openshift-config"
	acksName       = "admin-acks"
	acknowledged   = "true"
)

// Upgrades reads the release of an installed cluster, and asks its version operator for another one.
type Upgrades interface {
	// Version reads the ClusterVersion, and lets every later change of it wake the subscriber. It is nil without an error when there is no
	// connection.
	Version(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (*ClusterVersion, error)
	// ChangeVersion writes to the ClusterVersion that was read as resourceVersion. It reports whether it did: a ClusterVersion that has
	// changed since is left alone, and its change wakes the subscriber.
	ChangeVersion(ctx context.Context, cluster client.ObjectKey, resourceVersion string, change VersionChange) (bool, error)
	// Gates asks now for what an administrator has to acknowledge before an upgrade, sorted by key.
	Gates(ctx context.Context, cluster client.ObjectKey) ([]Gate, error)
	// Acknowledge answers gates by their keys. Keys that it answered before and that are not among these are not answered any more.
	Acknowledge(ctx context.Context, cluster client.ObjectKey, keys []string) error
}

// ClusterVersion is what the version operator of an installed cluster says of its release. A condition that is not reported is Unknown.
type ClusterVersion struct {
	// ClusterID is the ID of the cluster that answers.
	ClusterID       string
	ResourceVersion string
	// Observed: the operator has seen the spec as it is now.
	Observed bool
	// Channel is where the operator looks for updates; empty is nowhere.
	Channel string
	// Requested is the release that the spec asks for; empty when it asks for none.
	Requested Release
	// Desired is the release that the operator installs, or has installed.
	Desired Release
	// History are the releases that the cluster runs, or was made to, the newest first.
	History []PastRelease
	// Available are the updates that are recommended without reserve, Conditional those with known risks.
	Available   []Release
	Conditional []ConditionalRelease
	// Progressing is True while a release is being installed, Failing while that does not succeed. Upgradeable is False while a minor upgrade
	// would not be accepted, Accepted while the release that is asked for is not, and Invalid True while the spec cannot be used. Retrieved is
	// True when the updates of the channel are known.
	Progressing, Failing, Upgradeable, Accepted, Invalid, Retrieved OperatorCondition
}

// Release is a release of OpenShift, by version and image.
type Release struct{ Version, Image string }

// PastRelease is an entry of the history of a cluster.
type PastRelease struct {
	Release

	// Started is when the cluster began with it, and Ended when it was complete or given up; zero while it goes on.
	Started, Ended time.Time
	Completed      bool
}

// ConditionalRelease is an update with known risks.
type ConditionalRelease struct {
	Release

	// Recommended: none of the risks applies to the cluster. Risks have the text of each, by name.
	Recommended bool
	Risks       map[string]string
}

// Gate is a change that an administrator has to acknowledge before an upgrade.
type Gate struct {
	// Key is such as ack-4.20-kube-1.34-api-removals-in-4.21. Text says what is about to change.
	Key, Text    string
	Acknowledged bool
}

// VersionChange is what is written to a ClusterVersion in one write. What it leaves empty stays as it is.
type VersionChange struct {
	Channel string
	// Release is asked for, with the risks that the user has accepted.
	Release       Release
	AcceptedRisks []string
}

// Version reads from the connection's cache.
func (c Cached) Version(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (*ClusterVersion, error) {
	only := func(o client.Object) bool { return o.GetName() == clusterVersion }
	watch := subscriber.to("clusterversions", &configv1.ClusterVersion{}, only).Resting(subscriber.Waits)
	remote, err := c.watched(ctx, cluster, "ClusterVersions", watch)
	if err != nil || remote == nil {
		return nil, err
	}
	version := &configv1.ClusterVersion{}
	if err := remote.Get(ctx, client.ObjectKey{Name: clusterVersion}, version); err != nil {
		return nil, fmt.Errorf("read ClusterVersion %s of Cluster %s: %w", clusterVersion, cluster, err)
	}
	return VersionOf(version), nil
}

// VersionOf is what a ClusterVersion says.
func VersionOf(o *configv1.ClusterVersion) *ClusterVersion {
	condition := func(kind configv1.ClusterStatusConditionType) OperatorCondition {
		found := operatorCondition(o.Status.Conditions, kind)
		for _, c := range o.Status.Conditions {
			if c.Type == kind {
				found.Reason = c.Reason
			}
		}
		return found
	}
	v := &ClusterVersion{
		ClusterID: string(
			o.Spec.ClusterID,
		),
		ResourceVersion: o.ResourceVersion,
		Observed:        o.Status.ObservedGeneration == o.Generation,
		Channel:         o.Spec.Channel,
		Desired:         Release{o.Status.Desired.Version, o.Status.Desired.Image},
		Progressing:     condition(configv1.OperatorProgressing),
		Failing:         condition(versionFailing),
		Upgradeable:     condition(configv1.OperatorUpgradeable),
		Accepted:        condition(versionReleaseAccepted),
		Invalid:         condition(versionInvalid),
		Retrieved:       condition(configv1.RetrievedUpdates),
	}
	v.Progressing.Message = steps.ReplaceAllString(v.Progressing.Message, "$1")
	if wanted := o.Spec.DesiredUpdate; wanted != nil {
		v.Requested = Release{wanted.Version, wanted.Image}
	}
	for _, h := range o.Status.History {
		past := PastRelease{
			Release: Release{h.Version, h.Image}, Started: h.StartedTime.Time, Completed: h.State == configv1.CompletedUpdate,
		}
		if h.CompletionTime != nil {
			past.Ended = h.CompletionTime.Time
		}
		v.History = append(v.History, past)
	}
	for _, r := range o.Status.AvailableUpdates {
		v.Available = append(v.Available, Release{r.Version, r.Image})
	}
	for _, u := range o.Status.ConditionalUpdates {
		conditional := ConditionalRelease{Release: Release{u.Release.Version, u.Release.Image}, Risks: map[string]string{}}
		for _, c := range u.Conditions {
			conditional.Recommended = conditional.Recommended || c.Type == versionRecommended && c.Status == metav1.ConditionTrue
		}
		for _, risk := range u.Risks {
			conditional.Risks[risk.Name] = oneLine(risk.Message)
		}
		v.Conditional = append(v.Conditional, conditional)
	}
	return v
}

// steps are counted by the version operator in "Working towards 4.21.3: 123 of 900 done (13% complete), waiting on machine-config". Their
// numbers are left out: what repeats them would change with each of hundreds.
var steps = regexp.MustCompile(`\d+ of \d+ done \((\d+% complete)\)`)

// keepVersion keeps of a ClusterVersion what VersionOf reads.
func keepVersion(in client.Object) client.Object {
	o, ok := in.(*configv1.ClusterVersion)
	if !ok {
		return nil
	}
	kept := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
	}}
	kept.Spec.ClusterID, kept.Spec.Channel, kept.Spec.DesiredUpdate = o.Spec.ClusterID, o.Spec.Channel, o.Spec.DesiredUpdate
	status := &kept.Status
	status.Desired.Version, status.Desired.Image = o.Status.Desired.Version, o.Status.Desired.Image
	status.History, status.ObservedGeneration, status.Conditions = o.Status.History, o.Status.ObservedGeneration, o.Status.Conditions
	shared := map[string]string{}
	for _, r := range o.Status.AvailableUpdates {
		status.AvailableUpdates = append(status.AvailableUpdates, configv1.Release{Version: r.Version, Image: r.Image})
	}
	for _, u := range o.Status.ConditionalUpdates {
		status.ConditionalUpdates = append(status.ConditionalUpdates, keepUpdate(u, shared))
	}
	return kept
}

// keepUpdate keeps of an update with known risks what VersionOf reads. Dozens of updates have the same risks, whose texts are shared.
func keepUpdate(u configv1.ConditionalUpdate, shared map[string]string) configv1.ConditionalUpdate {
	once := func(text string) string {
		if _, known := shared[text]; !known {
			shared[text] = text
		}
		return shared[text]
	}
	kept := configv1.ConditionalUpdate{Release: configv1.Release{Version: u.Release.Version, Image: u.Release.Image}}
	for _, c := range u.Conditions {
		if c.Type == versionRecommended {
			kept.Conditions = append(kept.Conditions, metav1.Condition{Type: c.Type, Status: c.Status})
		}
	}
	for _, risk := range u.Risks {
		kept.Risks = append(kept.Risks, configv1.ConditionalUpdateRisk{Name: once(risk.Name), Message: once(oneLine(risk.Message))})
	}
	return kept
}

// ChangeVersion replaces spec.desiredUpdate as a whole: a patch of its fields would keep a force: true that somebody has left there (DESIGN
// D28).
func (c Cached) ChangeVersion(ctx context.Context, cluster client.ObjectKey, resourceVersion string, change VersionChange) (bool, error) {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return false, err
	}
	patch, err := change.patch(resourceVersion)
	if err != nil {
		return false, err
	}
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: clusterVersion}}
	if err = remote.Patch(ctx, version, patch); err == nil {
		return true, nil
	}
	err = fmt.Errorf("write ClusterVersion %s of Cluster %s: %w", clusterVersion, cluster, err)
	if !apierrors.IsInvalid(err) {
		return false, err
	}
	// A test that fails in a JSON patch is refused like a value that is not valid.
	current := &configv1.ClusterVersion{}
	if readErr := remote.Get(ctx, client.ObjectKey{Name: clusterVersion}, current); readErr != nil {
		return false, fmt.Errorf("read ClusterVersion %s of Cluster %s: %w", clusterVersion, cluster, readErr)
	}
	if current.ResourceVersion != resourceVersion {
		return false, nil
	}
	return false, err
}

// patch is a JSON patch of the ClusterVersion that was read as resourceVersion.
func (c VersionChange) patch(resourceVersion string) (client.Patch, error) {
	operations := []kube.Operation{{Op: "test", Path: "/metadata/resourceVersion", Value: resourceVersion}}
	if c.Channel != "" {
		operations = append(operations, kube.Operation{Op: "add", Path: "/spec/channel", Value: c.Channel})
	}
	if c.Release != (Release{}) {
		update := map[string]any{"version": c.Release.Version, "image": c.Release.Image}
		risks := make([]map[string]string, 0, len(c.AcceptedRisks))
		for _, risk := range c.AcceptedRisks {
			risks = append(risks, map[string]string{"name": risk})
		}
		if len(risks) > 0 {
			update["acceptRisks"] = risks // Releases without this field drop it.
		}
		operations = append(operations, kube.Operation{Op: "add", Path: "/spec/desiredUpdate", Value: update})
	}
	return kube.JSONPatch(operations...)
}

// Gates reads two ConfigMaps, either of which may not exist.
func (c Cached) Gates(ctx context.Context, cluster client.ObjectKey) ([]Gate, error) {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return nil, err
	}
	gates, err := kube.GetOrNil[corev1.ConfigMap](ctx, remote, client.ObjectKey{Namespace: gatesNamespace, Name: gatesName})
	if err != nil || gates == nil {
		return nil, err
	}
	acks, err := kube.GetOrNil[corev1.ConfigMap](ctx, remote, client.ObjectKey{Namespace: acksNamespace, Name: acksName})
	if err != nil {
		return nil, err
	}
	var found []Gate
	for _, key := range slices.Sorted(maps.Keys(gates.Data)) {
		gate := Gate{Key: key, Text: oneLine(gates.Data[key])}
		if acks != nil {
			gate.Acknowledged = acks.Data[key] == acknowledged
		}
		found = append(found, gate)
	}
	return found, nil
}

// Acknowledge applies the keys on the server, which leaves the answers of others alone.
func (c Cached) Acknowledge(ctx context.Context, cluster client.ObjectKey, keys []string) error {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return err
	}
	data := map[string]string{}
	for _, key := range keys {
		data[key] = acknowledged
	}
	acks := corev1ac.ConfigMap(acksName, acksNamespace).WithData(data)
	if err := remote.Apply(ctx, acks, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s/%s of Cluster %s: %w", acksNamespace, acksName, cluster, err)
	}
	return nil
}
