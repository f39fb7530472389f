// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// insecureDiagnostics lets the harness read metrics without a token, whose check would be requests to the API server.
const insecureDiagnostics = "--insecure-diagnostics=true"

// replica is one process of a manager.
type replica struct {
	*localcontrolplane.Manager
	started time.Time
}

// startReplica starts a manager under a name of its own.
func startReplica(ctx context.Context, cp *localcontrolplane.ControlPlane, spec localcontrolplane.ManagerSpec) (*replica, error) {
	spec.Args = append(spec.Args, insecureDiagnostics)
	started := time.Now()
	manager, err := cp.StartManager(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &replica{Manager: manager, started: started}, nil
}

// gauges is what a manager tells of itself.
type gauges struct {
	// passes are those of all its controllers, but for the one that probes connections again and again.
	passes float64
	// looks are those of the controller whose objects users make: OpenshiftAssistedConfigs or OpenshiftAssistedControlPlanes.
	looks float64
	// queued are requests that wait for a pass, and active those that have one.
	queued, active float64
	// leading is 1 once the replica has the Lease.
	leading float64
	// connected is to how many installed clusters there is a connection.
	connected  float64
	goroutines float64
	heapMiB    float64
}

// idle reports whether the replica leads, and has nothing to do.
func (g gauges) idle() bool { return g.leading == 1 && g.queued == 0 && g.active == 0 }

// gauges reads what the replica tells of itself now.
func (r *replica) gauges(ctx context.Context) (g gauges, err error) {
	err = r.metrics(ctx, func(text io.Reader) error {
		g, err = readGauges(text)
		return err
	})
	return g, err
}

// metrics lets the text be read that the replica has for Prometheus.
func (r *replica) metrics(ctx context.Context, read func(io.Reader) error) error {
	address := strings.Replace(r.DiagnosticsURL, "https://", "http://", 1) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for the metrics of %s: %w", r.Name(), err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for the metrics of %s: %w", r.Name(), err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for the metrics of %s: %s", r.Name(), response.Status)
	}
	return read(response.Body)
}

// probing is the controller of Cluster API that looks at connections again and again, whatever happens.
const probing = `controller="clustercache"`

// looking are the controllers that look at what users make.
var looking = regexp.MustCompile(`controller="(openshiftassistedconfig|openshiftassistedcontrolplane)"`)

// lookedAt are the kinds of what they look at, by manager.
var lookedAt = map[string]schema.GroupVersionKind{
	bootstrapName:    bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfigList"),
	controlPlaneName: controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlaneList"),
}

// readGauges reads the text that Prometheus reads.
func readGauges(text io.Reader) (gauges, error) {
	var g gauges
	var errs []error
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		sum := g.of(line[:at])
		if sum == nil {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		*sum, errs = *sum+value, append(errs, err)
		if sum == &g.passes && looking.MatchString(line) {
			g.looks += value
		}
	}
	g.heapMiB /= 1 << 20
	return g, errors.Join(append(errs, lines.Err())...)
}

// of is what a metric with its labels is part of; nil for those that nobody asks for.
func (g *gauges) of(metric string) *float64 {
	name, labels, _ := strings.Cut(metric, "{")
	switch name {
	case "controller_runtime_reconcile_total", "controller_runtime_active_workers", "workqueue_depth":
		if strings.Contains(labels, probing) {
			return nil
		}
	}
	switch name {
	case "controller_runtime_reconcile_total":
		return &g.passes
	case "controller_runtime_active_workers":
		return &g.active
	case "workqueue_depth":
		return &g.queued
	case "leader_election_master_status":
		return &g.leading
	case "capi_cluster_cache_connection_up":
		return &g.connected
	case "go_goroutines":
		return &g.goroutines
	case "go_memstats_heap_inuse_bytes":
		return &g.heapMiB
	}
	return nil
}
