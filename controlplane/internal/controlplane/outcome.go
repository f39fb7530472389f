// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// outcome is what became of the writes about one subject. Its zero value means that there was nothing to write, or that all was written.
type outcome struct {
	// conflict is an object that has a wanted name and belongs to something else. It was not touched.
	conflict string
	// refused is what is said about something that is not accepted as it is: trying again does not help until somebody changes it.
	refused string
	// failed are the errors for which the pass is tried again.
	failed error
}

// add takes the error of one step into account.
func (o *outcome) add(err error) {
	if err == nil {
		return
	}
	var taken *conflictError
	if errors.As(err, &taken) {
		o.conflict = taken.object
		return
	}
	var refused *refusedError
	switch {
	case o.refused != "":
	case errors.As(err, &refused):
		o.refused = refused.text
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		o.refused = err.Error()
	}
	if refused == nil || !refused.settled {
		o.failed = errors.Join(o.failed, err)
	}
}

// outcomes are those of all subjects of a pass. Status is computed from them and from the view.
type outcomes struct {
	attempt, install, creation, machines, kubeconfig outcome

	// synced are the Machines whose condition UpToDate was written, as they are now, by name.
	synced map[string]*clusterv1.Machine
	// published: <cluster>-kubeconfig was created.
	published bool
}

// err is what the pass is tried again for.
func (o *outcomes) err() error {
	return kerrors.NewAggregate([]error{o.attempt.failed, o.install.failed, o.creation.failed, o.machines.failed, o.kubeconfig.failed})
}

// conflict is the first object that has a wanted name and belongs to something else; empty when there is none.
func (o *outcomes) conflict() string {
	for _, subject := range []outcome{o.install, o.creation, o.kubeconfig} {
		if subject.conflict != "" {
			return subject.conflict
		}
	}
	return ""
}

// notCreated says why a Machine could not be created; empty when all were, or none was missing.
func (o *outcomes) notCreated() string {
	if o.creation.failed != nil {
		return o.creation.failed.Error()
	}
	return o.creation.refused
}

// owned are the control-plane Machines as they are after the pass has written to them.
func (o *outcomes) owned(v *view.View) collections.Machines {
	machines := collections.FromMachines(v.Machines.Owned.UnsortedList()...)
	for name, m := range o.synced {
		machines[name] = m
	}
	return machines
}

// conflictError says that an object has a wanted name and belongs to something else.
type conflictError struct{ object string }

func (e *conflictError) Error() string {
	return fmt.Sprintf("%s exists and belongs to something else", e.object)
}

// refusedError says why something cannot be written as it is asked for.
type refusedError struct {
	text string
	// settled: it is not tried again before something changes or a fixed time has passed.
	settled bool
}

func (e *refusedError) Error() string { return e.text }
