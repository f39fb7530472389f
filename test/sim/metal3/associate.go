// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	reasonAssociated        = "AssociateBareMetalHostSuccess"
	reasonAssociatedByReuse = "AssociateBareMetalHostViaNodeReuseSuccess"

	unhealthyAnnotation           = "capm3.metal3.io/unhealthy"
	deprecatedUnhealthyAnnotation = "capi.metal3.io/unhealthy"
	// nodeReuseLabel reserves a released host for the next Machine of the same MachineDeployment (M3-55).
	nodeReuseLabel = infrastructureGroup + "/node-reuse"
)

// associate chooses a host and writes the association in the order of M3-12: host, BMC Secret, condition, annotation, userData.
// The last three are the flush of this pass.
func (p *machinePass) associate(ctx context.Context) error {
	host, reason, err := p.choose(ctx)
	if err != nil {
		return err
	}
	if host == nil {
		message := "no available host found. Requeuing. " + requeued
		p.setCondition(conditionAssociate, metav1.ConditionFalse, "AssociateBareMetalHostFailed",
			"failed to associate the Metal3Machine to a BareMetalHost: "+message)
		p.setDeprecated(clusterv1.Condition{
			Type: deprecatedAssociate, Status: "False", Severity: clusterv1.ConditionSeverityError,
			Reason: "AssociateBMHFailed", Message: message,
		})
		return &waitError{message: message, after: p.Durations.HostRetry}
	}
	before := host.DeepCopy()
	setLabel(host, clusterv1.ClusterNameLabel, p.machine.Spec.ClusterName)
	delete(host.Labels, nodeReuseLabel)
	if err := p.consume(ctx, before, host, p.userDataName()); err != nil {
		return err
	}
	if err := p.labelCredentials(ctx, host, p.machine.Spec.ClusterName); err != nil {
		return err
	}
	p.associated(reason)
	setAnnotation(p, hostAnnotation, host.Namespace+"/"+host.Name)
	return p.set(map[string]any{"name": p.userDataName(), "namespace": p.GetNamespace()}, "status", "userData")
}

func (p *machinePass) associated(reason string) {
	if p.hasCondition(conditionAssociate, metav1.ConditionTrue) {
		return
	}
	p.setCondition(conditionAssociate, metav1.ConditionTrue, reason, "")
	p.setDeprecated(clusterv1.Condition{Type: deprecatedAssociate, Status: "True"})
}

// choose returns the host to take, nil when there is none (M3-10), and the reason under which it is taken.
func (p *machinePass) choose(ctx context.Context) (*bmov1alpha1.BareMetalHost, string, error) {
	selector, err := p.hostSelector()
	if err != nil {
		return nil, "", err
	}
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := p.config.client.List(
		ctx, hosts, client.InNamespace(p.GetNamespace()), client.MatchingLabelsSelector{Selector: selector},
	); err != nil {
		return nil, "", fmt.Errorf("list the BareMetalHosts for %s %s: %w", p.GetKind(), client.ObjectKeyFromObject(p), err)
	}
	slices.SortFunc(hosts.Items, func(a, b bmov1alpha1.BareMetalHost) int { return cmp.Compare(a.Name, b.Name) })
	var free, reserved []*bmov1alpha1.BareMetalHost
	for i := range hosts.Items {
		host := &hosts.Items[i]
		switch {
		case p.consumes(host):
			return host, reasonAssociated, nil
		case !isFree(host):
		case host.Labels[nodeReuseLabel] != "" && host.Labels[nodeReuseLabel] == p.nodeReuseName():
			reserved = append(reserved, host)
		case host.Spec.ConsumerRef == nil:
			free = append(free, host)
		}
	}
	if len(reserved) > 0 {
		return reserved[0], reasonAssociatedByReuse, nil
	}
	if len(free) == 0 {
		return nil, "", nil
	}
	return p.draw(free), reasonAssociated, nil
}

// draw returns the host to take: the first, or with a seed the one whose hash with seed and Metal3Machine is the smallest, so that
// the choice depends on nothing else.
func (p *machinePass) draw(free []*bmov1alpha1.BareMetalHost) *bmov1alpha1.BareMetalHost {
	if p.ShuffleSeed == nil {
		return free[0]
	}
	rank := func(host *bmov1alpha1.BareMetalHost) []byte {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%s/%s", *p.ShuffleSeed, p.GetNamespace(), p.GetName(), host.Name))
		return sum[:]
	}
	return slices.MinFunc(free, func(a, b *bmov1alpha1.BareMetalHost) int { return bytes.Compare(rank(a), rank(b)) })
}

// consumes compares as CAPM3 does: the version of the reference does not count (M3-82).
func (p *machinePass) consumes(host *bmov1alpha1.BareMetalHost) bool {
	ref := host.Spec.ConsumerRef
	return ref != nil && ref.Kind == kindMachine && ref.Name == p.GetName() &&
		(ref.Namespace == "" || ref.Namespace == p.GetNamespace()) && ref.GroupVersionKind().Group == infrastructureGroup
}

// isFree is what M3-10 asks of a host besides its labels and consumer.
func isFree(host *bmov1alpha1.BareMetalHost) bool {
	state := host.Status.Provisioning.State
	if state != bmov1alpha1.StateAvailable && state != bmov1alpha1.StateReady {
		return false
	}
	for _, annotation := range []string{bmov1alpha1.PausedAnnotation, unhealthyAnnotation, deprecatedUnhealthyAnnotation} {
		if _, found := host.Annotations[annotation]; found {
			return false
		}
	}
	return host.DeletionTimestamp.IsZero() && host.Status.ErrorMessage == ""
}

func (p *machinePass) hostSelector() (labels.Selector, error) {
	matchLabels, _, err := unstructured.NestedStringMap(p.Object, "spec", "hostSelector", "matchLabels")
	if err != nil {
		return nil, fmt.Errorf("read spec.hostSelector.matchLabels of %s: %w", client.ObjectKeyFromObject(p), err)
	}
	selector := labels.SelectorFromSet(matchLabels)
	expressions, _, err := unstructured.NestedSlice(p.Object, "spec", "hostSelector", "matchExpressions")
	if err != nil {
		return nil, fmt.Errorf("read spec.hostSelector.matchExpressions of %s: %w", client.ObjectKeyFromObject(p), err)
	}
	for _, entry := range expressions {
		fields, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("spec.hostSelector.matchExpressions of %s has an entry that is no object", client.ObjectKeyFromObject(p))
		}
		key, _, _ := unstructured.NestedString(fields, "key")
		operator, _, _ := unstructured.NestedString(fields, "operator")
		values, _, _ := unstructured.NestedStringSlice(fields, "values")
		requirement, err := labels.NewRequirement(key, selection.Operator(strings.ToLower(operator)), values)
		if err != nil {
			return nil, fmt.Errorf("read spec.hostSelector.matchExpressions of %s: %w", client.ObjectKeyFromObject(p), err)
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}

// consume writes what CAPM3 wants in the host's spec, with the metadata that the caller has changed, in one patch and only if
// something differs from before (M3-12, M3-23, M3-26).
func (p *machinePass) consume(ctx context.Context, before, host *bmov1alpha1.BareMetalHost, userData string) error {
	if !p.consumes(host) {
		host.Spec.ConsumerRef = &corev1.ObjectReference{
			APIVersion: p.GetAPIVersion(), Kind: kindMachine, Name: p.GetName(), Namespace: p.GetNamespace(),
		}
	}
	if err := p.copyImage(host, userData); err != nil {
		return err
	}
	if mode := p.nested("spec", "automatedCleaningMode"); mode != "" {
		host.Spec.AutomatedCleaningMode = bmov1alpha1.AutomatedCleaningMode(mode)
	}
	host.Spec.Online = true
	return p.patchHost(ctx, before, host)
}

// copyImage is the one moment at which the image reaches the host: it has none, and user data is known (M3-23, M3-24). With a
// dataTemplate it waits for the rendered data (M3-25).
func (p *machinePass) copyImage(host *bmov1alpha1.BareMetalHost, userData string) error {
	if host.Spec.Image != nil || host.Spec.CustomDeploy != nil || userData == "" || p.waitsForData() {
		return nil
	}
	host.Spec.UserData = &corev1.SecretReference{Name: userData, Namespace: p.GetNamespace()}
	if method := p.nested("spec", "customDeploy", "method"); method != "" {
		host.Spec.CustomDeploy = &bmov1alpha1.CustomDeploy{Method: method}
	}
	fields, found, err := unstructured.NestedMap(p.Object, "spec", "image")
	if err != nil || !found {
		return err
	}
	fields["format"] = fields[p.config.shape.diskFormat]
	data, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("read spec.image of %s: %w", client.ObjectKeyFromObject(p), err)
	}
	image := &bmov1alpha1.Image{}
	if err := json.Unmarshal(data, image); err != nil {
		return fmt.Errorf("read spec.image of %s: %w", client.ObjectKeyFromObject(p), err)
	}
	if image.URL != "" {
		host.Spec.Image = image
	}
	return nil
}

// waitsForData tells whether a dataTemplate holds the image back. Rendering is not simulated: whoever plays the data controller
// sets status.renderedData.
func (p *machinePass) waitsForData() bool {
	return p.nested("spec", "dataTemplate", "name") != "" && p.nested("status", "renderedData", "name") == ""
}

// patchHost writes the host if it changed, and only if nobody else did since it was read: two Metal3Machines must not take one.
func (p *machinePass) patchHost(ctx context.Context, before, host *bmov1alpha1.BareMetalHost) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if unchanged(before, host) {
		return nil
	}
	if err := p.config.client.Patch(ctx, host, patch); err != nil {
		return fmt.Errorf("patch BareMetalHost %s for Metal3Machine %s: %w", client.ObjectKeyFromObject(host), client.ObjectKeyFromObject(p), err)
	}
	return nil
}

// labelCredentials sets the cluster's label on the host's BMC Secret, or takes it off for an empty name. A missing Secret is
// BMO's concern.
func (p *machinePass) labelCredentials(ctx context.Context, host *bmov1alpha1.BareMetalHost, cluster string) error {
	secret := &corev1.Secret{}
	if err := p.config.client.Get(ctx, host.CredentialsKey(), secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := secret.DeepCopy()
	delete(secret.Labels, clusterv1.ClusterNameLabel)
	if cluster != "" {
		setLabel(secret, clusterv1.ClusterNameLabel, cluster)
	}
	if secret.Labels[clusterv1.ClusterNameLabel] == before.Labels[clusterv1.ClusterNameLabel] {
		return nil
	}
	if err := p.config.client.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("label Secret %s of BareMetalHost %s: %w", client.ObjectKeyFromObject(secret), host.Name, err)
	}
	return nil
}

func setLabel(o client.Object, key, value string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
}

func setAnnotation(o client.Object, key, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}
