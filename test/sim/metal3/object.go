// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	conditionReady  = "Ready"
	conditionPaused = "Paused"
)

// object is a CAPM3 object during one pass: as it was read, and as the pass wants it.
type object struct {
	*unstructured.Unstructured
	read   *unstructured.Unstructured
	client client.Client
	shape  shape
	// conditions follow the v1beta2 contract, deprecated ones the v1beta1 contract; both are written by flush.
	conditions []metav1.Condition
	deprecated []clusterv1.Condition
	// summarized are the conditions behind Ready, and deprecatedSummarized those behind the deprecated Ready, in the order in
	// which they are named there.
	summarized, deprecatedSummarized []string
}

// load reads an object. It returns nil without an error when there is none.
func (c *config) load(ctx context.Context, kind string, key client.ObjectKey) (*object, error) {
	current := c.shape.newObject(kind)
	if err := c.client.Get(ctx, key, current); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get %s %s: %w", kind, key, err)
	}
	o := &object{Unstructured: current.DeepCopy(), read: current, client: c.client, shape: c.shape}
	if err := decodeList(o.Object, c.shape.conditions, &o.conditions); err != nil {
		return nil, fmt.Errorf("read the conditions of %s %s: %w", kind, key, err)
	}
	if err := decodeList(o.Object, c.shape.deprecatedConditions, &o.deprecated); err != nil {
		return nil, fmt.Errorf("read the deprecated conditions of %s %s: %w", kind, key, err)
	}
	return o, nil
}

// flush writes what the pass changed as CAPI's patch helper does, which fixes the order that others see (M3-34): the conditions
// first, then metadata and spec, then the rest of the status.
func (o *object) flush(ctx context.Context) error {
	if err := o.summarize(); err != nil {
		return fmt.Errorf("set the conditions of %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	}
	steps := []struct {
		paths  [][]string
		writer func(context.Context, client.Object, client.Patch) error
	}{
		{o.conditionPaths(), o.patchStatus},
		{[][]string{{"metadata"}, {"spec"}}, o.patchMain},
		{[][]string{{"status"}}, o.patchStatus},
	}
	written := o.read.DeepCopy()
	for _, step := range steps {
		base := written.DeepCopy()
		for _, path := range step.paths {
			if err := copyPath(o.Object, written.Object, path); err != nil {
				return fmt.Errorf("prepare a patch of %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
			}
		}
		patch := client.MergeFrom(base)
		data, err := patch.Data(written)
		if err != nil {
			return fmt.Errorf("prepare a patch of %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
		}
		if string(data) == "{}" {
			continue
		}
		if err := step.writer(ctx, written.DeepCopy(), patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("patch %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
		}
	}
	return nil
}

func (o *object) patchMain(ctx context.Context, changed client.Object, patch client.Patch) error {
	return o.client.Patch(ctx, changed, patch)
}

func (o *object) patchStatus(ctx context.Context, changed client.Object, patch client.Patch) error {
	return o.client.Status().Patch(ctx, changed, patch)
}

func (o *object) conditionPaths() [][]string {
	if o.shape.conditions == nil {
		return [][]string{o.shape.deprecatedConditions}
	}
	return [][]string{o.shape.conditions, o.shape.deprecatedConditions}
}

func copyPath(from, to map[string]any, path []string) error {
	value, found, err := unstructured.NestedFieldCopy(from, path...)
	if err != nil {
		return fmt.Errorf("read %s: %w", strings.Join(path, "."), err)
	}
	if !found {
		unstructured.RemoveNestedField(to, path...)
		return nil
	}
	return unstructured.SetNestedField(to, value, path...)
}

func (o *object) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&o.conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: o.GetGeneration(),
	})
}

// setDeprecated sets a condition of the v1beta1 contract. Severity, reason and message are empty when it is True.
func (o *object) setDeprecated(condition clusterv1.Condition) {
	for i := range o.deprecated {
		if o.deprecated[i].Type != condition.Type {
			continue
		}
		condition.LastTransitionTime = o.deprecated[i].LastTransitionTime
		if o.deprecated[i] != condition {
			condition.LastTransitionTime = metav1.Now()
			o.deprecated[i] = condition
		}
		return
	}
	condition.LastTransitionTime = metav1.Now()
	o.deprecated = append(o.deprecated, condition)
}

// summarize derives both Ready conditions (M3-39) and puts all conditions in their places.
func (o *object) summarize() error {
	status, reason, message := summary(o.conditions, o.summarized)
	o.setCondition(conditionReady, status, reason, message)
	if worst := worstDeprecated(o.deprecated, o.deprecatedSummarized); worst != nil {
		worst.Type = conditionReady
		o.setDeprecated(*worst)
	}
	if err := encodeList(o.Object, o.shape.conditions, o.conditions); err != nil {
		return err
	}
	return encodeList(o.Object, o.shape.deprecatedConditions, o.deprecated)
}

// decodeList reads a list of API objects. A nil path, for a version that has no such list, leaves it empty.
func decodeList[T any](from map[string]any, path []string, into *[]T) error {
	if path == nil {
		return nil
	}
	list, _, err := unstructured.NestedSlice(from, path...)
	if err != nil {
		return err
	}
	*into = make([]T, len(list))
	for i := range list {
		fields, ok := list[i].(map[string]any)
		if !ok {
			return fmt.Errorf("entry %d of %s is no object", i, strings.Join(path, "."))
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &(*into)[i]); err != nil {
			return fmt.Errorf("decode entry %d of %s: %w", i, strings.Join(path, "."), err)
		}
	}
	return nil
}

// encodeList is the opposite of decodeList. An empty list is not written.
func encodeList[T any](into map[string]any, path []string, list []T) error {
	if path == nil || len(list) == 0 {
		return nil
	}
	encoded := make([]any, len(list))
	for i := range list {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			return fmt.Errorf("encode entry %d of %s: %w", i, strings.Join(path, "."), err)
		}
		encoded[i] = fields
	}
	return unstructured.SetNestedSlice(into, encoded, path...)
}

// summary merges conditions as CAPI does: any False wins, then any that is not known; both are listed in the message.
func summary(conditions []metav1.Condition, kinds []string) (status metav1.ConditionStatus, reason, message string) {
	status, reason = metav1.ConditionTrue, "Ready"
	var lines []string
	for _, kind := range kinds {
		condition := meta.FindStatusCondition(conditions, kind)
		switch {
		case condition == nil:
			lines = append(lines, fmt.Sprintf("* %s: Condition not yet reported", kind))
			if status == metav1.ConditionTrue {
				status, reason = metav1.ConditionUnknown, "ReadyUnknown"
			}
		case condition.Status != metav1.ConditionTrue:
			text := condition.Message
			if text == "" {
				text = condition.Reason
			}
			lines = append(lines, fmt.Sprintf("* %s: %s", kind, text))
			status, reason = metav1.ConditionFalse, "NotReady"
		}
	}
	return status, reason, strings.Join(lines, "\n")
}

// worstDeprecated returns the False condition of the highest severity, the first on a tie; a True one when none is False; nil
// when there is none at all.
func worstDeprecated(conditions []clusterv1.Condition, kinds []string) *clusterv1.Condition {
	rank := map[clusterv1.ConditionSeverity]int{
		clusterv1.ConditionSeverityInfo: 1, clusterv1.ConditionSeverityWarning: 2, clusterv1.ConditionSeverityError: 3,
	}
	var worst *clusterv1.Condition
	for _, kind := range kinds {
		for i := range conditions {
			candidate := conditions[i]
			if string(candidate.Type) == kind && (worst == nil || rank[candidate.Severity] > rank[worst.Severity]) {
				worst = &candidate
			}
		}
	}
	return worst
}
