// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// days of values, more than any test looks at.
const steady = "x3000"

// healthy is what the managers of a hub serve on which nothing is to do.
func healthy() map[string]string {
	return map[string]string{
		`leader_election_master_status{name="openshift-assisted-bootstrap"}`:     "1" + steady,
		`leader_election_master_status{name="openshift-assisted-control-plane"}`: "1" + steady,
		`openshift_assisted_build_info{manager="bootstrap"}`:                     "1" + steady,
		`openshift_assisted_build_info{manager="control-plane"}`:                 "1" + steady,
		`openshift_assisted_hosts{state="not_recognised"}`:                       "0" + steady,
		`openshift_assisted_hosts{state="waiting_for_agent"}`:                    "0" + steady,
		`openshift_assisted_hosts{state="installed"}`:                            "12" + steady,
		`openshift_assisted_hosts_oldest_seconds{state="waiting_for_agent"}`:     "0" + steady,
		`openshift_assisted_hosts_oldest_seconds{state="installed"}`:             "900000+60" + steady,
		`openshift_assisted_unknown_agents`:                                      "0" + steady,
		`openshift_assisted_upgrades_stalled`:                                    "0" + steady,
		`openshift_assisted_workload_unreachable`:                                "0" + steady,
		`openshift_assisted_workload_unreachable_oldest_seconds`:                 "0" + steady,
		`openshift_assisted_etcd_members{state="healthy"}`:                       "9" + steady,
		`openshift_assisted_etcd_members{state="unhealthy"}`:                     "0" + steady,
		`openshift_assisted_etcd_members{state="lost"}`:                          "0" + steady,
		`openshift_assisted_credential_expiry_seconds`:                           "400000" + steady,

		`controller_runtime_reconcile_total{controller="openshiftassistedconfig",result="success",manager="bootstrap"}`: "5000+10" + steady,
		`controller_runtime_reconcile_total{controller="openshiftassistedconfig",result="error",manager="bootstrap"}`:   "0" + steady,
		`controller_runtime_reconcile_errors_total{controller="openshiftassistedconfig",manager="bootstrap"}`:           "0" + steady,

		`workqueue_depth{name="openshiftassistedconfig",controller="openshiftassistedconfig",priority="0",manager="bootstrap"}`: "0" + steady,
	}
}

// secondReplica is a label of given series: they are what the replica serves that does not lead.
const secondReplica = `replica="1"`

// scrape returns what Prometheus scrapes of a healthy hub on which the given series are different: each manager has two replicas, and the
// one that does not lead has zeros, unless a series with the label of secondReplica says otherwise. A label "manager" says whose a series
// is that both have; series that no manager has stay as they are.
func scrape(series map[string]string) ([]input, error) {
	all := healthy()
	maps.Copy(all, series)
	known := append(Own(), Libraries()...)
	var scraped []input
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.Contains(name, secondReplica) {
			continue
		}
		metric, own, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		found, ok := Find(known, metric)
		if !ok {
			return nil, fmt.Errorf("nobody serves the metric %s", metric)
		}
		labels := splitLabels(own)
		manager := managerOf(found, labels)
		if manager == "" {
			return nil, fmt.Errorf("say whose %s is, with a label manager", name)
		}
		labels = slices.DeleteFunc(labels, func(label string) bool { return strings.HasPrefix(label, "manager=") })
		second := cmp.Or(all[strings.Replace(name, "}", ","+secondReplica+"}", 1)], follower(found, all[name]))
		for replica, values := range []string{all[name], second} {
			target := fmt.Sprintf(`namespace=%q,job=%q,pod="%s-%d",instance="%s-%d:8443"`,
				namespaceOf(manager), jobOf(manager), manager, replica, manager, replica)
			scraped = append(scraped, input{metric + "{" + strings.Join(append([]string{target}, labels...), ",") + "}", values})
		}
	}
	return scraped, nil
}

// namespaceOf and jobOf are the labels that Prometheus gives to the series of a manager.
func namespaceOf(manager string) string { return "openshift-assisted-" + manager + "-system" }

func jobOf(manager string) string { return namespaceOf(manager) + "/controller-manager" }

// follower has the values of a replica that does not lead.
func follower(series Series, leader string) string {
	switch series.Name {
	case "openshift_assisted_build_info":
		return leader
	case "openshift_assisted_credential_expiry_seconds": // There is no series without a token.
		return "_" + steady
	default:
		return "0" + steady
	}
}

// managerOf is the manager that serves a series.
func managerOf(series Series, labels []string) string {
	for _, label := range labels {
		if manager, found := strings.CutPrefix(label, "manager="); found {
			return strings.Trim(manager, `"`)
		}
		if name, found := strings.CutPrefix(label, `name="openshift-assisted-`); found {
			return strings.Trim(name, `"`)
		}
	}
	if series.Manager == Both {
		return ""
	}
	return series.Manager
}

// splitLabels takes the labels of a series apart, whose values have no commas.
func splitLabels(labels string) []string {
	if labels == "" {
		return nil
	}
	return strings.Split(labels, ",")
}
