// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

// OnlyConflicts reports whether an error says nothing but that somebody changed the objects between their read and their write. The change
// that was in the way triggers another reconcile where the objects are watched, so such an error needs neither the log nor a back-off.
func OnlyConflicts(err error) bool {
	var causes []error
	var joined interface{ Unwrap() []error }
	var aggregate kerrors.Aggregate
	switch {
	case errors.As(err, &aggregate):
		causes = aggregate.Errors()
	case errors.As(err, &joined):
		causes = joined.Unwrap()
	default:
		return apierrors.IsConflict(err)
	}
	for _, cause := range causes {
		if !OnlyConflicts(cause) {
			return false
		}
	}
	return len(causes) > 0
}
