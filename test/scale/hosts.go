// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// measureHosts lets as many hosts of one installed cluster register within a window, and measures what becomes of them, and what a storm
// and a resync of theirs cost then.
func (m *measurement) measureHosts(ctx context.Context, h *hub, size int) error {
	h.printf("%d hosts of one cluster", size)
	if err := h.add(ctx, size); err != nil {
		return err
	}
	if _, err := h.run(ctx, settleTimeout(size)); err != nil {
		return err
	}
	if err := m.burst(ctx, h, size); err != nil {
		return err
	}
	if err := m.storm(ctx, h, profileStorm+ofHosts, size); err != nil {
		return err
	}
	if err := h.stopManagers(ctx); err != nil {
		return err
	}
	if err := m.resync(ctx, h, profileResync+ofHosts, size); err != nil {
		return err
	}
	return h.erase(ctx)
}

// burst lets all hosts of the only cluster register.
func (m *measurement) burst(ctx context.Context, h *hub, size int) error {
	c := h.copies[0]
	offset, err := auditEnd(h.cp.AuditLog())
	if err != nil {
		return err
	}
	result, err := h.phase(ctx, profileBurst, func(ctx context.Context) (time.Duration, error) {
		begin := time.Now()
		watching, stop := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			h.watch(watching)
		}()
		err := h.register(ctx, c, m.opts.window())
		stop()
		<-watched
		if err != nil {
			return 0, err
		}
		_, err = h.settle(ctx, settleTimeout(size))
		return time.Since(begin) - restTime, err
	})
	if err != nil {
		return err
	}
	result.Size = size
	agents, err := registrationsSince(h.cp.AuditLog(), offset, c.namespace, h.replicas[bootstrapName].User)
	if err != nil {
		return err
	}
	result.Times = burstTimes(agents)
	return m.add(result, nil)
}

// burstTimes are the seconds from the events of Agents to the answers.
func burstTimes(agents map[string]*registration) map[string]float64 {
	told := func(r *registration) time.Time { return r.told }
	created := func(r *registration) time.Time { return r.created }
	claimed := func(r *registration) time.Time { return r.claimed }
	bound := func(r *registration) time.Time { return r.bound }
	times := map[string]float64{}
	for _, way := range []struct {
		name     string
		from, to func(*registration) time.Time
	}{{"inventory to claim", told, claimed}, {"creation to claim", created, claimed}, {"inventory to last write", told, bound}} {
		addTimes(times, way.name, seconds(agents, way.from, way.to))
	}
	return times
}

// addTimes adds what half of some times, 99 of 100 of them, and all of them do not exceed.
func addTimes(times map[string]float64, name string, sorted []float64) {
	times[name+" p50"], times[name+" p99"], times[name+" max"] = percentile(sorted, 0.5), percentile(sorted, 0.99), percentile(sorted, 1)
}

// register makes the Agents of all workers of a cluster at a steady rate, as assisted-service does: first the object, then its status. It
// plays the service's answer to each that is bound too, and returns when all of them are.
func (h *hub) register(ctx context.Context, c copyOf, window time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, window+settleTimeout(c.workers))
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return h.answer(ctx, c) })
	all.Go(func() error { return h.registerHosts(ctx, c, window) })
	return all.Wait()
}

func (h *hub) registerHosts(ctx context.Context, c copyOf, window time.Duration) error {
	requests, ctx := errgroup.WithContext(ctx)
	requests.SetLimit(writers)
	ticker := time.NewTicker(max(window/time.Duration(c.workers), time.Microsecond))
	defer ticker.Stop()
	for i := range c.workers {
		select {
		case <-ctx.Done():
			return requests.Wait()
		case <-ticker.C:
		}
		requests.Go(func() error { return h.registerHost(ctx, c, i) })
	}
	return requests.Wait()
}

// registerHost makes the Agent of a worker, and writes what its host has told.
func (h *hub) registerHost(ctx context.Context, c copyOf, i int) error {
	agent, err := h.template.newAgent(c, i)
	if err != nil {
		return err
	}
	status, _, err := unstructured.NestedMap(agent.Object, "status")
	if err != nil {
		return fmt.Errorf("read the status of Agent %s: %w", agent.GetName(), err)
	}
	if err := h.client.Create(ctx, agent); err != nil {
		return fmt.Errorf("make Agent %s: %w", agent.GetName(), err)
	}
	return h.patchStatus(ctx, agent, status)
}

// newAgent is the Agent of a worker that has registered, has passed its checks and is bound to no cluster.
func (t *template) newAgent(c copyOf, i int) (*unstructured.Unstructured, error) {
	own := t.workerOf(c, i)
	pairs := append([]string{
		t.first.name, own.name, t.first.machine, own.machine, t.first.mac, own.mac, t.first.agent, own.agent,
	}, t.replacements(c)...)
	agent := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(string(t.agent))), &agent.Object); err != nil {
		return nil, fmt.Errorf("read the Agent of the seed: %w", err)
	}
	metadata := map[string]any{
		"namespace": c.namespace, "name": own.agent, "ownerReferences": owners(agent),
		"labels": map[string]any{assisted.InfraEnvLabel: t.infraEnv},
		"annotations": map[string]any{
			assisted.InventoryAnnotation: agent.GetAnnotations()[assisted.InventoryAnnotation],
		},
	}
	agent.Object["metadata"] = metadata
	agent.Object["spec"] = map[string]any{"approved": false, "role": ""}
	status := agent.Object["status"].(map[string]any)
	for _, field := range []string{"progress", "bootstrap", "csrStatus", "installation_disk_id"} {
		delete(status, field)
	}
	status["role"], status["kind"] = "auto-assign", "AddToExistingClusterHost"
	for key, value := range answerOf(false) {
		status[key] = value
	}
	return agent, nil
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

// answer tells every Agent of a cluster that was bound that it is, and returns when all workers have one that was approved and bound. It
// is an informer, since the API server ends the watch of whom it takes for too slow, which the harness is on a busy machine.
func (h *hub) answer(ctx context.Context, c copyOf) error {
	requests, answering := errgroup.WithContext(ctx)
	requests.SetLimit(writers)
	watching, stop := context.WithCancel(answering)
	defer stop()
	bound := map[string]bool{}
	look := func(o any) {
		agent, isAgent := o.(*assisted.Agent)
		if !isAgent || agent.Spec.ClusterDeploymentName == nil {
			return
		}
		if agent.Status.DebugInfo.State == assisted.AgentStateKnownUnbound {
			requests.Go(func() error { return h.patchStatus(answering, agent.DeepCopy(), answerOf(true)) })
		} else if agent.Spec.Approved {
			bound[agent.Name] = true
		}
		if len(bound) > c.workers { // The Agent of the control plane is among them.
			stop()
		}
	}
	agents, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: h.agents(c.namespace), ObjectType: &assisted.Agent{},
		Handler: toolscache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) }},
	})
	informer.RunWithContext(watching)
	if err := requests.Wait(); err != nil {
		return err
	}
	if len(bound) <= c.workers {
		return fmt.Errorf(
			"%d of %d hosts were bound when the time was over; not bound: %s", max(0, len(bound)-1), c.workers, unbound(agents, bound),
		)
	}
	return nil
}

// unbound tells how far three of the Agents are that are not bound, or not approved.
func unbound(agents toolscache.Store, bound map[string]bool) string {
	const most = 3
	var told []string
	for _, o := range agents.List() {
		if agent, isAgent := o.(*assisted.Agent); isAgent && !bound[agent.Name] && len(told) < most {
			machine, _, _ := agent.ClaimedFor()
			told = append(told, fmt.Sprintf(
				"Agent %s, resource version %s, state %q, claimed for %q, bound %t, approved %t", agent.Name, agent.ResourceVersion,
				agent.Status.DebugInfo.State, machine, agent.Spec.ClusterDeploymentName != nil, agent.Spec.Approved,
			))
		}
	}
	return strings.Join(told, "; ")
}

// agents lists and watches the Agents of a namespace.
func (h *hub) agents(namespace string) toolscache.ListerWatcher {
	options := func(raw metav1.ListOptions) client.ListOption {
		return &client.ListOptions{Namespace: namespace, Raw: &raw}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &assisted.AgentList{}
			return list, h.client.List(ctx, list, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return h.client.Watch(ctx, &assisted.AgentList{}, options(raw))
		},
	}
}
