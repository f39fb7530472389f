// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// service plays what assisted-service writes of the hosts of one cluster. As there, one worker writes the statuses of all Agents, each as a
// whole: a busy API server slows the service down.
type service struct {
	hub     *hub
	cluster copyOf
	reports chan report
}

// report is what a status is to say.
type report struct {
	agent  *unstructured.Unstructured
	status map[string]any
}

// newService returns the service of a cluster. There are two reports of each host: what it has told, and that it is bound.
func newService(h *hub, c copyOf) *service {
	return &service{hub: h, cluster: c, reports: make(chan report, 2*(c.workers+1))}
}

// tell lets fields of an Agent's status be written. It does not wait for that.
func (s *service) tell(agent *unstructured.Unstructured, status map[string]any) {
	s.reports <- report{agent, status}
}

// run writes what there is to tell, and that an Agent is bound when it was, until all hosts of the cluster are bound and approved.
func (s *service) run(ctx context.Context) error {
	working, ctx := errgroup.WithContext(ctx)
	writing, stop := context.WithCancel(ctx)
	working.Go(func() error { return s.write(writing) })
	working.Go(func() error {
		defer stop()
		return s.answer(ctx)
	})
	return working.Wait()
}

// write is the only worker.
func (s *service) write(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case next := <-s.reports:
			if err := s.update(ctx, next); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// update writes one status, on what is there when somebody else has changed the Agent.
func (s *service) update(ctx context.Context, r report) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		status, _, err := unstructured.NestedMap(r.agent.Object, "status")
		if err != nil {
			return err
		}
		if status == nil {
			status = map[string]any{}
		}
		maps.Copy(status, r.status)
		r.agent.Object["status"] = status
		err = s.hub.client.Status().Update(ctx, r.agent)
		if !apierrors.IsConflict(err) {
			return err
		}
		if readErr := s.hub.client.Get(ctx, client.ObjectKeyFromObject(r.agent), r.agent); readErr != nil {
			return readErr
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write the status of Agent %s: %w", r.agent.GetName(), err)
	}
	return nil
}

// answerOf is what assisted-service says of a host that is ready, and bound or not.
func answerOf(bound bool) map[string]any {
	state, reason, met := assisted.AgentStateKnownUnbound, "Unbound", "AgentIsNotApproved"
	boundStatus, metStatus := metav1.ConditionFalse, metav1.ConditionFalse
	if bound {
		state, reason, met = assisted.AgentStateKnown, "Bound", "AgentIsReady"
		boundStatus, metStatus = metav1.ConditionTrue, metav1.ConditionTrue
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string, status metav1.ConditionStatus, reason string) any {
		return map[string]any{
			"type": kind, "status": string(status), "reason": reason, "message": "As the harness plays it.",
			"lastTransitionTime": now, "lastHeartbeatTime": now,
		}
	}
	return map[string]any{
		"debugInfo": map[string]any{"state": state, "stateInfo": "Host is ready"},
		"conditions": []any{
			condition("Connected", metav1.ConditionTrue, "AgentIsConnected"),
			condition("Validated", metav1.ConditionTrue, "ValidationsPassing"),
			condition("RequirementsMet", metStatus, met),
			condition("Installed", metav1.ConditionFalse, "InstallationNotStarted"),
			condition(assisted.ConditionBound, boundStatus, reason),
			condition(assisted.ConditionSpecSynced, metav1.ConditionTrue, "SyncOK"),
		},
	}
}

// answer tells every Agent of the cluster that was bound that it is, and returns when all workers have one that was approved and bound. It
// is an informer, since the API server ends the watch of whom it takes for too slow, which the harness is on a busy machine.
func (s *service) answer(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	told, bound := map[string]bool{}, map[string]bool{}
	look := func(o any) {
		agent, isAgent := o.(*unstructured.Unstructured)
		if !isAgent || !isBound(agent) {
			return
		}
		name, waits := agent.GetName(), stateOf(agent) == assisted.AgentStateKnownUnbound
		if waits && !told[name] {
			told[name] = true
			s.tell(agent.DeepCopy(), answerOf(true))
		}
		if !waits && isApproved(agent) {
			bound[name] = true
		}
		if len(bound) > s.cluster.workers { // The Agent of the control plane is among them.
			stop()
		}
	}
	agents, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: s.hub.agents(s.cluster.namespace), ObjectType: &unstructured.Unstructured{},
		Handler: toolscache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) }},
	})
	informer.RunWithContext(watching)
	if len(bound) <= s.cluster.workers {
		return fmt.Errorf("%d of %d hosts were bound when the time was over; not bound: %s",
			max(0, len(bound)-1), s.cluster.workers, unbound(agents, bound))
	}
	return nil
}

func isBound(agent *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedString(agent.Object, "spec", "clusterDeploymentName", "name")
	return found && err == nil
}

func isApproved(agent *unstructured.Unstructured) bool {
	approved, _, err := unstructured.NestedBool(agent.Object, "spec", "approved")
	return approved && err == nil
}

func stateOf(agent *unstructured.Unstructured) string {
	state, _, err := unstructured.NestedString(agent.Object, "status", "debugInfo", "state")
	if err != nil {
		return ""
	}
	return state
}

// unbound tells how far three of the Agents are that are not bound, or not approved.
func unbound(agents toolscache.Store, bound map[string]bool) string {
	const most = 3
	var told []string
	for _, o := range agents.List() {
		if agent, isAgent := o.(*unstructured.Unstructured); isAgent && !bound[agent.GetName()] && len(told) < most {
			told = append(told, fmt.Sprintf(
				"Agent %s, resource version %s, state %q, claimed for %q, bound %t, approved %t", agent.GetName(), agent.GetResourceVersion(),
				stateOf(agent), agent.GetAnnotations()[bootstrapv1.ClaimAnnotation], isBound(agent), isApproved(agent),
			))
		}
	}
	return strings.Join(told, "; ")
}

func agentList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(assisted.GroupVersion.WithKind("AgentList"))
	return list
}

// agents lists and watches the Agents of a namespace.
func (h *hub) agents(namespace string) toolscache.ListerWatcher {
	options := func(raw metav1.ListOptions) client.ListOption {
		return &client.ListOptions{Namespace: namespace, Raw: &raw}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := agentList()
			return list, h.client.List(ctx, list, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return h.client.Watch(ctx, agentList(), options(raw))
		},
	}
}
