// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// standby is what the names of second replicas end with.
	standby = "-standby"
	// writers is how many requests the harness makes at a time.
	writers = 8
)

// The profiles: what happens to the clusters of a hub, or to the hosts of one cluster.
const (
	profileIdle     = "idle"
	profileRestart  = "restart"
	profileStorm    = "storm"
	profileResync   = "resync"
	profileFailover = "failover"
	profileBurst    = "burst"

	// ofHosts are those profiles again, with many hosts of one cluster in the place of many clusters.
	ofHosts = "-hosts"
)

// settleTimeout is for how long a size may keep the managers busy.
func settleTimeout(size int) time.Duration { return 2*time.Minute + time.Duration(size)*time.Second }

// measureClusters measures what was asked for of a hub that has this many clusters, and no managers that run.
func (m *measurement) measureClusters(ctx context.Context, h *hub, size int) error {
	h.printf("%d clusters", size)
	if err := h.grow(ctx, size); err != nil {
		return err
	}
	timeout := settleTimeout(size)
	steps := []func() error{
		func() error {
			return m.add(h.phase(ctx, profileRestart, func(ctx context.Context) (time.Duration, error) { return h.run(ctx, timeout) }))
		},
		func() error { return m.idle(ctx, h) },
		func() error { return m.storm(ctx, h, profileStorm, size) },
		func() error { return h.stopManagers(ctx) },
		func() error { return m.resync(ctx, h, profileResync, size) },
		func() error { return m.failover(ctx, h, size) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// idle lets time pass.
func (m *measurement) idle(ctx context.Context, h *hub) error {
	if !m.wants(profileIdle) {
		return nil
	}
	period := m.opts.idle()
	return m.add(h.phase(ctx, profileIdle, func(ctx context.Context) (time.Duration, error) { return period, h.rest(ctx, period) }))
}

// storm rewrites the status of every Agent and AgentClusterInstall, as assisted-service does when it is restarted: only the times of its
// probes change.
func (m *measurement) storm(ctx context.Context, h *hub, profile string, size int) error {
	if !m.wants(profileStorm) {
		return nil
	}
	result, err := h.phase(ctx, profile, func(ctx context.Context) (time.Duration, error) {
		for _, k := range kinds {
			if k.kind != "Agent" && k.kind != "AgentClusterInstall" {
				continue
			}
			if err := h.touch(ctx, k); err != nil {
				return 0, err
			}
		}
		return h.settle(ctx, settleTimeout(size))
	})
	result.Size = size
	return m.add(result, err)
}

// touch writes the status of all objects of a kind, with another time of the last probe.
func (h *hub) touch(ctx context.Context, k kind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.gvk())
	if err := h.client.List(ctx, list); err != nil {
		return fmt.Errorf("list every %s: %w", k.kind, err)
	}
	requests, ctx := errgroup.WithContext(ctx)
	requests.SetLimit(writers)
	for i := range list.Items {
		o := &list.Items[i]
		requests.Go(func() error {
			conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
			if err != nil {
				return fmt.Errorf("read the conditions of %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			for _, condition := range conditions {
				probe(condition.(map[string]any), time.Now())
			}
			return h.patchStatus(ctx, o, map[string]any{"conditions": conditions})
		})
	}
	return requests.Wait()
}

// probe gives a condition another time of the last probe, in the field in which it has one.
func probe(condition map[string]any, at time.Time) {
	for _, field := range []string{"lastHeartbeatTime", "lastProbeTime"} {
		if condition[field] != nil {
			condition[field] = at.UTC().Format(time.RFC3339)
		}
	}
}

// patchStatus sets fields of an object's status.
func (h *hub) patchStatus(ctx context.Context, o client.Object, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode a status: %w", err)
	}
	if err := h.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the status of %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return nil
}

const (
	// resyncs is how often every object is looked at again while that is measured. Informers begin at a time of their own and have a period
	// that is up to a tenth longer or shorter: what is looked at once more or less often than the rest is a small part of that.
	resyncs = 3
	// resyncPeriod is the same for all sizes: what managers cost meanwhile, without a resync, is then a like part of all of them.
	resyncPeriod = 30 * time.Second
)

// resync runs managers that look at everything again after a while, and counts what one look costs.
func (m *measurement) resync(ctx context.Context, h *hub, profile string, size int) error {
	if !m.wants(profileResync) {
		return nil
	}
	if _, err := h.run(ctx, settleTimeout(size), "--sync-period="+resyncPeriod.String()); err != nil {
		return err
	}
	var looks map[string]float64
	result, err := h.phase(ctx, profile, func(ctx context.Context) (took time.Duration, err error) {
		begin := time.Now()
		looks, err = h.looks(ctx, resyncs)
		return time.Since(begin), err
	})
	if err != nil {
		return err
	}
	result.Size = size
	for manager, cost := range result.Costs {
		cost.CPUSeconds, cost.Passes = cost.CPUSeconds/looks[manager], int(float64(cost.Passes)/looks[manager])
		result.Costs[manager] = cost
	}
	if err := m.add(result, nil); err != nil {
		return err
	}
	return h.stopManagers(ctx)
}

// looks returns when both managers have looked at each of their objects so often, and how often each has by then.
func (h *hub) looks(ctx context.Context, often float64) (map[string]float64, error) {
	objects, before := map[string]float64{}, map[string]float64{}
	for name, r := range h.replicas {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(lookedAt[name])
		if err := h.client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list every %s: %w", lookedAt[name].Kind, err)
		}
		told, err := r.gauges(ctx)
		if err != nil {
			return nil, err
		}
		objects[name], before[name] = float64(len(list.Items)), told.looks
	}
	looks := map[string]float64{}
	// The first look may come a period late, since an object is looked at no sooner than a period after its manager leads.
	timeout := time.Duration(2*often+2) * resyncPeriod
	err := wait.PollUntilContextTimeout(ctx, sampleInterval, timeout, true, func(ctx context.Context) (bool, error) {
		h.sample()
		done := true
		for name, r := range h.replicas {
			told, err := r.gauges(ctx)
			if err != nil {
				return false, err
			}
			looks[name] = (told.looks - before[name]) / objects[name]
			done = done && looks[name] >= often
		}
		return done, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait until every object was looked at %.0f times, of %v so far: %w", often, looks, err)
	}
	return looks, nil
}

// failover runs two replicas of each manager and kills those that lead. What is measured is from then until the others have settled, of
// which they wait most of the time for the Lease to end.
func (m *measurement) failover(ctx context.Context, h *hub, size int) error {
	if !m.wants(profileFailover) {
		return nil
	}
	if _, err := h.run(ctx, settleTimeout(size)); err != nil {
		return err
	}
	leaders := h.replicas
	h.replicas = map[string]*replica{}
	for name := range leaders {
		if err := h.startManager(ctx, name, name+standby); err != nil {
			return err
		}
	}
	result, err := h.phase(ctx, profileFailover, func(ctx context.Context) (time.Duration, error) {
		for _, leader := range leaders {
			if err := leader.Kill9(); err != nil {
				return 0, err
			}
		}
		return h.settle(ctx, settleTimeout(size))
	})
	if err := m.add(result, err); err != nil {
		return err
	}
	return h.stopManagers(ctx)
}
