// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// recorder notes every change of the objects in a namespace, in the form of the recordings. It watches, so that, other
// than they, it misses nothing.
type recorder struct {
	fixture *fixture
	mu      sync.Mutex
	names   map[string]string
	last    map[string]map[string]string
	changes []change
	events  int
}

// recordedKinds are empty lists of what is recorded.
func recordedKinds() []client.ObjectList {
	return []client.ObjectList{&aiv1.AgentList{}, &aiv1.InfraEnvList{}, &hiveext.AgentClusterInstallList{}, &hivev1.ClusterDeploymentList{}}
}

// record starts to watch. names maps names of Agents to those of their hosts and may be filled later (see name).
func (f *fixture) record() *recorder {
	f.t.Helper()
	r := &recorder{fixture: f, names: map[string]string{}, last: map[string]map[string]string{}}
	for _, list := range recordedKinds() {
		watcher, err := f.client.Watch(f.ctx, list, client.InNamespace(f.namespace))
		must(f.t, err)
		go r.follow(watcher)
	}
	return r
}

// follow ends with the fixture's context.
func (r *recorder) follow(watcher watch.Interface) {
	for event := range watcher.ResultChan() {
		obj, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		r.see(obj, event.Type == watch.Deleted)
	}
}

func (r *recorder) see(obj client.Object, deleted bool) {
	name, fields := fieldsOf(obj)
	if deleted {
		fields = map[string]string{fieldDeleted: ""}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events++
	var keys []string
	for field, value := range fields {
		if r.last[name][field] != value || deleted {
			keys = append(keys, field)
		}
	}
	if _, had := r.last[name]["bootstrap"]; had && fields["bootstrap"] == "" && !deleted {
		fields["bootstrap"] = "<gone>"
		keys = append(keys, "bootstrap")
	}
	slices.Sort(keys)
	for _, field := range keys {
		r.changes = append(r.changes, change{group: r.events, object: name, field: field, value: fields[field]})
	}
	if fields["bootstrap"] == "<gone>" {
		delete(fields, "bootstrap")
	}
	r.last[name] = fields
}

// count returns how often a field took a value since the last take. An Agent's object is its own name.
func (r *recorder) count(object, field, value string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.changes {
		if c.object == object && c.field == field && c.value == value {
			n++
		}
	}
	return n
}

// name tells which host an Agent is.
func (r *recorder) name(agent, host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[agent] = host
}

// take returns the changes since the last take.
func (r *recorder) take() []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.changes
	r.changes = nil
	for i := range out {
		if host, ok := r.names[out[i].object]; ok {
			out[i].object = "agent/" + host
		}
	}
	return out
}

// current says whether the recorder has seen everything that is there now.
func (r *recorder) current() bool {
	f := r.fixture
	now := map[string]map[string]string{}
	for _, list := range recordedKinds() {
		must(f.t, f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
		must(f.t, meta.EachListItem(list, func(obj runtime.Object) error {
			name, fields := fieldsOf(obj.(client.Object))
			now[name] = fields
			return nil
		}))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, last := range r.last {
		if _, deleted := last[fieldDeleted]; now[name] == nil && !deleted {
			return false
		}
	}
	for name, fields := range now {
		if !maps.Equal(fields, r.last[name]) {
			return false
		}
	}
	return true
}

// fieldDeleted is that of an object that is gone.
const fieldDeleted = "DELETED"

// fieldsOf returns the fields of an object that are compared.
func fieldsOf(obj client.Object) (name string, fields map[string]string) {
	fields = map[string]string{}
	switch o := obj.(type) {
	case *aiv1.Agent:
		name = o.Name
		agentFields(o, fields)
	case *aiv1.InfraEnv:
		name = "infraenv/" + o.Name
		for _, c := range o.Status.Conditions {
			fields["cond."+c.Type] = conditionText(string(c.Status), c.Reason, c.Message)
		}
	case *hiveext.AgentClusterInstall:
		name = "aci/" + o.Name
		clusterFields(o, fields)
	case *hivev1.ClusterDeployment:
		name = "cd/" + o.Name
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		fields["deleting"] = "True"
	}
	return name, fields
}

func agentFields(o *aiv1.Agent, fields map[string]string) {
	for _, c := range o.Status.Conditions {
		fields["cond."+c.Type] = conditionText(string(c.Status), c.Reason, c.Message)
	}
	put(fields, "debugInfo.state", o.Status.DebugInfo.State)
	put(fields, "debugInfo.stateInfo", comparableInfo(o.Status.DebugInfo.StateInfo))
	put(fields, "kind", o.Status.Kind)
	put(fields, "role", o.Status.Role)
	if o.Status.Bootstrap {
		fields["bootstrap"] = "True"
	}
	if o.Status.Progress.CurrentStage != "" {
		fields["progress"] = o.Status.Progress.CurrentStage + " " + strconv.FormatInt(o.Status.Progress.InstallationPercentage, 10)
	}
}

func clusterFields(o *hiveext.AgentClusterInstall, fields map[string]string) {
	for _, c := range o.Status.Conditions {
		fields["cond."+string(c.Type)] = conditionText(string(c.Status), c.Reason, c.Message)
	}
	put(fields, "debugInfo.state", o.Status.DebugInfo.State)
	put(fields, "debugInfo.stateInfo", o.Status.DebugInfo.StateInfo)
}

func put(fields map[string]string, field, value string) {
	if value != "" {
		fields[field] = value
	}
}

func conditionText(status, reason, message string) string {
	return fmt.Sprintf("%s %s %s", status, reason, comparableMessage(reason, message))
}
