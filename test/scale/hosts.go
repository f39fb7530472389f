// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// register makes the Agents of all workers of a cluster at a steady rate, and lets the service tell of them. It returns when all of them
// are bound.
func (h *hub) register(ctx context.Context, c copyOf, window time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, window+settleTimeout(c.workers))
	defer cancel()
	service := newService(h, c)
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return h.registerHosts(ctx, c, window, service) })
	all.Go(func() error { return service.run(ctx) })
	return all.Wait()
}

func (h *hub) registerHosts(ctx context.Context, c copyOf, window time.Duration, service *service) error {
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
		requests.Go(func() error { return h.registerHost(ctx, c, i, service) })
	}
	return requests.Wait()
}

// registerHost makes the Agent of a worker, and lets the service tell what its host has told.
func (h *hub) registerHost(ctx context.Context, c copyOf, i int, service *service) error {
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
	service.tell(agent, status)
	return nil
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
