// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"

	kerrors "k8s.io/apimachinery/pkg/util/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// outcome is what came of the steps about one subject. Its zero value means that none was tried.
type outcome struct {
	steps []kube.Outcome
	// taken is an object that has a wanted name and belongs to something else. It was not touched.
	taken string
}

// add takes the error of one step into account. A step that writes several objects returns an aggregate, whose errors count one by one: the
// write of one object may be refused while that of another fails.
func (o *outcome) add(err error) {
	if several, ok := err.(kerrors.Aggregate); ok { //nolint:errorlint // One that is wrapped stays one error, with its words.
		for _, one := range several.Errors() {
			o.add(one)
		}
		return
	}
	var name *takenError
	if errors.As(err, &name) {
		o.taken = name.object
		return
	}
	o.steps = append(o.steps, kube.OutcomeOf(kube.WithoutValues(err)))
}

// refused returns the error of the first write that is refused; it is empty when none is.
func (o *outcome) refused() string {
	for _, step := range o.steps {
		if err := step.Refusal(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// err returns the errors for which the pass is tried again.
func (o *outcome) err() error {
	errs := make([]error, 0, len(o.steps))
	for _, step := range o.steps {
		errs = append(errs, step.Err())
	}
	return kerrors.NewAggregate(errs)
}

// outcomes are those of all subjects of a pass. Status is computed from them and from the view.
type outcomes struct {
	leaving, attempt, install, creation, machines, records, kubeconfig, upgrade outcome

	// written is the resource version that the pass has given the control plane when it recorded something there; empty when it has not. It
	// was given under the version that was read, so the status that the pass has come to may be written under it. unrecorded: the control
	// plane has changed since it was read, so that nothing was recorded.
	written    string
	unrecorded bool
	// created are the Machines that the pass has created, by name, and begun is true when it has created the AgentClusterInstall of an
	// installation.
	created map[string]*clusterv1.Machine
	begun   bool
	// synced are the Machines whose condition UpToDate was written, as they are now, by name.
	synced map[string]*clusterv1.Machine
	// published: <cluster>-kubeconfig was created.
	published bool
	// token is how long the token lives that was issued and published; nil when none was. notIssued says why not, when one was requested.
	token     *view.TokenLife
	notIssued string
}

// err returns the errors for which the pass is tried again.
func (o *outcomes) err() error {
	return kerrors.NewAggregate([]error{
		o.leaving.err(), o.attempt.err(), o.install.err(), o.creation.err(), o.machines.err(), o.records.err(), o.kubeconfig.err(),
		o.upgrade.err(),
	})
}

// taken is the first object that has a wanted name and belongs to something else; empty when there is none.
func (o *outcomes) taken() string {
	for _, subject := range []outcome{o.install, o.creation, o.kubeconfig} {
		if subject.taken != "" {
			return subject.taken
		}
	}
	return ""
}

// notCreated says why a Machine could not be created; empty when all were, or none was missing.
func (o *outcomes) notCreated() string {
	if err := o.creation.err(); err != nil {
		return err.Error()
	}
	return ""
}

// notLeft says why a Machine could not leave etcd; empty when each that had to could.
func (o *outcomes) notLeft() string {
	if err := o.leaving.err(); err != nil {
		return err.Error()
	}
	return ""
}

// owned are the control-plane Machines as they are after the pass has written to them. Those that it has created count at once, because
// others wait for what status tells of them.
func (o *outcomes) owned(v *view.View) collections.Machines {
	machines := collections.FromMachines(v.Machines.Owned.UnsortedList()...)
	for name, m := range o.created {
		machines[name] = m
	}
	for name, m := range o.synced {
		machines[name] = m
	}
	return machines
}

// takenError says that an object has a wanted name and belongs to something else.
type takenError struct{ object string }

// Error implements error.
func (e *takenError) Error() string {
	return fmt.Sprintf("%s exists and belongs to something else", e.object)
}
