// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests what config/alerts, config/dashboards and config/metrics have for those who run the providers.
package monitoring

import (
	"slices"
	"strings"

	"github.com/capi-openshift/agent-providers/test/monitoring/customresourcestate"
)

// The managers, as the label manager of alerts has them.
const (
	Bootstrap    = "bootstrap"
	ControlPlane = "control-plane"
	// Both stands for each of them.
	Both = "both"
)

// Type is what a metric is.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Series is a metric that queries may name.
type Series struct {
	Name string
	Type Type
	// Manager has it: Bootstrap, ControlPlane, Both; empty when kube-state-metrics has it.
	Manager string
	// Labels of its own, with the values that each may have; nil allows all.
	Labels map[string][]string
}

// States are those of hosts.
var States = []string{
	"waiting_for_host", "waiting_for_agent", "not_recognised", "several_match", "duplicate", "validations_failing", "ready", "installing",
	"needs_attention", "failed", "disconnected", "installed",
}

var (
	phases = []string{"media", "host_chosen", "booted", "recognised", "bound", "installing", "installed", "node", "ready"}
	roles  = []string{"control_plane", "worker"}
	ended  = []string{"completed", "failed"}

	refused = []string{"not_recognised", "several_agents", "several_hosts", "duplicate_serial_number", "claimed_by_other"}
	steps   = []string{
		"machine", "agent", "infra_env", "pre_drain_hook", "drain", "volumes", "pre_terminate_hook", "infrastructure", "bootstrap", "node",
		"workers", "orphaning", "machines", "orphans", "install", "other",
	}
	topologies = []string{"single_node", "two_node_arbiter", "two_node_fencing", "highly_available"}
)

// Own are the metrics of the managers themselves.
func Own() []Series {
	return []Series{
		{"openshift_assisted_machine_phase_seconds", Histogram, Bootstrap, labels{"phase": phases, "role": roles, "day": {"1", "2"}}},
		{"openshift_assisted_hosts", Gauge, Bootstrap, labels{"state": States}},
		{"openshift_assisted_hosts_oldest_seconds", Gauge, Bootstrap, labels{"state": States}},
		{"openshift_assisted_unknown_agents", Gauge, Bootstrap, nil},
		{"openshift_assisted_agents_refused_total", Counter, Bootstrap, labels{"reason": refused}},
		{"openshift_assisted_image_ready_seconds", Histogram, Bootstrap, nil},
		{"openshift_assisted_installs_total", Counter, ControlPlane, labels{
			"topology": topologies, "release_minor": nil, "result": {"completed", "failed", "retried"},
			"reason": {"", "host", "cluster", "cancelled", "asked", "automatic", "lost"},
		}},
		{"openshift_assisted_install_seconds", Histogram, ControlPlane, labels{"topology": topologies}},
		{"openshift_assisted_upgrades_total", Counter, ControlPlane, labels{"release_minor": nil, "result": ended}},
		{"openshift_assisted_upgrade_seconds", Histogram, ControlPlane, nil},
		{"openshift_assisted_upgrades_stalled", Gauge, ControlPlane, nil},
		{"openshift_assisted_replacements_total", Counter, ControlPlane, labels{
			"cause": {"unhealthy", "outdated"}, "result": {"started", "completed", "failed"},
		}},
		{"openshift_assisted_etcd_members", Gauge, ControlPlane, labels{"state": {"healthy", "unhealthy", "lost"}}},
		{"openshift_assisted_workload_unreachable", Gauge, ControlPlane, nil},
		{"openshift_assisted_workload_unreachable_oldest_seconds", Gauge, ControlPlane, nil},
		{"openshift_assisted_release_resolve_seconds", Histogram, ControlPlane, labels{"result": {"resolved", "failed"}}},
		{"openshift_assisted_deletion_age_seconds", Gauge, Both, labels{
			"kind": {"OpenshiftAssistedConfig", "OpenshiftAssistedControlPlane", "Machine"}, "step": steps,
		}},
		{"openshift_assisted_credential_expiry_seconds", Gauge, ControlPlane, nil},
		{"openshift_assisted_build_info", Gauge, Both, labels{"version": nil, "revision": nil, "go": nil}},
		{"openshift_assisted_answer_seconds", Histogram, Both, labels{"controller": nil}},
		{"openshift_assisted_own_answer_seconds", Histogram, Both, labels{"controller": nil}},
	}
}

type labels = map[string][]string

// Libraries are the metrics of controller-runtime, client-go, Cluster API and Go that queries name.
func Libraries() []Series {
	return []Series{
		{"capi_reconcile_time_seconds", Histogram, Both, labels{"controller": nil}},
		{"capi_reconcile_total", Counter, Both, labels{"controller": nil, "result": nil}},
		{"controller_runtime_active_workers", Gauge, Both, labels{"controller": nil}},
		{"controller_runtime_reconcile_errors_total", Counter, Both, labels{"controller": nil}},
		{"controller_runtime_reconcile_time_seconds", Histogram, Both, labels{"controller": nil}},
		{"controller_runtime_reconcile_total", Counter, Both, labels{"controller": nil, "result": nil}},
		{"go_goroutines", Gauge, Both, nil},
		{"leader_election_master_status", Gauge, Both, labels{"name": {"openshift-assisted-bootstrap", "openshift-assisted-control-plane"}}},
		{"process_cpu_seconds_total", Counter, Both, nil},
		{"process_resident_memory_bytes", Gauge, Both, nil},
		{"process_start_time_seconds", Gauge, Both, nil},
		{"rest_client_requests_total", Counter, Both, labels{"code": nil, "host": nil, "method": nil}},
		{"workqueue_depth", Gauge, Both, labels{"controller": nil, "name": nil, "priority": nil}},
		{"workqueue_queue_duration_seconds", Histogram, Both, labels{"controller": nil, "name": nil}},
	}
}

// Targets are the labels by which Prometheus tells what it scrapes.
func Targets() []string { return []string{"instance", "job", "namespace", "pod"} }

// OfObjects are the metrics of the configuration of kube-state-metrics.
func OfObjects(config *customresourcestate.Config) []Series {
	var all []Series
	for _, resource := range config.Spec.Resources {
		for _, metric := range resource.Metrics {
			series := Series{Name: resource.Name(&metric), Type: Gauge, Labels: labelsOf(append(metric.LabelPaths(), resource.LabelsFromPath)...)}
			if set := metric.Each.StateSet; set != nil {
				series.Labels[set.LabelName] = set.List
			}
			all = append(all, series)
		}
	}
	return all
}

// labelsOf are labels whose values nobody knows beforehand.
func labelsOf[Path any](all ...map[string]Path) labels {
	found := labels{}
	for _, paths := range all {
		for label := range paths {
			found[label] = nil
		}
	}
	return found
}

// Find returns the metric that a query names, by one of the names that its type has, and which labels it has there.
func Find(all []Series, name string) (Series, bool) {
	for _, series := range all {
		if series.Type != Histogram && series.Name == name {
			return series, true
		}
		suffix, found := strings.CutPrefix(name, series.Name)
		if series.Type != Histogram || !found || !slices.Contains([]string{"_bucket", "_count", "_sum"}, suffix) {
			continue
		}
		if suffix == "_bucket" {
			with := labels{"le": nil}
			for label, values := range series.Labels {
				with[label] = values
			}
			series.Labels = with
		}
		return series, true
	}
	return Series{}, false
}
