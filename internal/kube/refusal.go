// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Refusal is what the API server says of an object that it does not take, in other words than its own, which may quote what nobody may see.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// webhookName finds the webhook in the API server's words about its denial.
var webhookName = regexp.MustCompile(`admission webhook "([^"]+)"`)

// silentWebhook finds the webhook in the API server's words about one that it cannot reach, or that does not answer.
var silentWebhook = regexp.MustCompile(`failed calling webhook "([^"]+)"`)

// InOwnWords returns the error of a write that names the object, such as "InfraEnv a". When the object is refused, the error is a Refusal:
// it says who refused it and which fields are wrong, without their values and without the words of a webhook, which may quote them. An
// object is refused, too, for as long as a webhook does not answer that has to be asked about it. What the API server forbids by role or
// quota it explains without them, and other errors are not about the object: both are passed on.
func InOwnWords(err error, object string) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status) || IsConflict(err):
		return fmt.Errorf("write %s: %w", object, err)
	case denied(err):
		by := "an admission policy"
		if match := webhookName.FindStringSubmatch(status.Status().Message); match != nil {
			by = "admission webhook " + match[1]
		}
		return Refusal(fmt.Sprintf("%s refused %s: whoever runs it can tell why", by, object))
	case silent(err) != "":
		return Refusal(fmt.Sprintf("the API server cannot take %s now: admission webhook %s does not answer", object, silent(err)))
	case apierrors.IsInvalid(err):
		return Refusal(fmt.Sprintf("the API server refused %s: %s", object, fieldsOf(status.Status())))
	case apierrors.IsBadRequest(err):
		return Refusal(fmt.Sprintf("the API server cannot read %s", object))
	case apierrors.IsForbidden(err):
		return Refusal(fmt.Sprintf("%s: %s", object, status.Status().Message))
	}
	return fmt.Errorf("write %s: %w", object, err)
}

// silent returns the name of the webhook for whose answer the API server has waited in vain; it is empty when that is not what went wrong.
func silent(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsInternalError(err) || !errors.As(err, &status) {
		return ""
	}
	if match := silentWebhook.FindStringSubmatch(status.Status().Message); match != nil {
		return match[1]
	}
	return ""
}

// Explained is InOwnWords for objects without the contents of Secrets: a webhook that refuses one says to whoever asked for it what to
// change.
func Explained(err error, object string) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && denied(err) {
		return Refusal(fmt.Sprintf("%s is refused: %s", object, status.Status().Message))
	}
	return InOwnWords(err, object)
}

// WithoutValues returns the error of a write without the values that the API server quotes when it finds them invalid, and as a Refusal
// when a webhook does not answer. All else is as it was: what the caller wrote before it, the fields and what is wrong with them, and what
// webhooks say.
func WithoutValues(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	before := strings.TrimSuffix(err.Error(), status.Status().Message)
	if webhook := silent(err); webhook != "" {
		return Refusal(fmt.Sprintf("%sadmission webhook %s does not answer", before, webhook))
	}
	if !apierrors.IsInvalid(err) || denied(err) {
		return err
	}
	return Refusal(before + "the API server refused it: " + fieldsOf(status.Status()))
}

// fieldsOf names the fields that the API server did not accept, and what is wrong with them.
func fieldsOf(status metav1.Status) string {
	problems := sets.New[string]()
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			problems.Insert(strings.TrimPrefix(cause.Field+": "+withoutValue(cause), ": "))
		}
	}
	if problems.Delete(""); len(problems) == 0 {
		return "it does not say for which field"
	}
	return strings.Join(sets.List(problems), "; ")
}

// withoutValue is what is wrong with a field, without its value: `Invalid value: "x": must be y` says "must be y".
func withoutValue(cause metav1.StatusCause) string {
	kind, rest, _ := strings.Cut(cause.Message, ": ")
	switch cause.Type {
	case metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeFieldValueDuplicate,
		metav1.CauseTypeFieldValueNotFound:
		value, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return kind // No text, and nobody knows where it ends.
		}
		if why := strings.TrimPrefix(strings.TrimPrefix(rest, value), ": "); why != "" {
			return why
		}
		return kind
	}
	return cause.Message
}
