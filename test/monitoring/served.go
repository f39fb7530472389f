// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/capi-openshift/agent-providers/test/monitoring/scraped"
)

// The stories whose managers are scraped for what queries name.
const (
	StoryMachines = "test/contract/machines"
	StoryTopology = "test/contract/topology"
	StoryFaults   = "test/faults"
)

// onlyIn has the metrics that no manager serves before something special has happened, or after that is gone, with the stories in which it
// is there when they are scraped. All others are there in every story.
var onlyIn = map[string][]string{
	"openshift_assisted_upgrades_total":  {StoryTopology},
	"openshift_assisted_upgrade_seconds": {StoryTopology},
	// All clusters with faults are deleted when their managers are scraped.
	"openshift_assisted_credential_expiry_seconds": {StoryMachines, StoryTopology},
	// The sandbox has no registry that could be asked what a release image is.
	"openshift_assisted_release_resolve_seconds": nil,
}

// CheckServed returns how what was scraped in a story is not what queries are checked against: metrics that are not there, and labels and
// values that series have and that nobody knows.
func CheckServed(story string, bootstrap, controlPlane scraped.Metrics) error {
	var problems []error
	for _, manager := range []struct {
		name   string
		served scraped.Metrics
	}{{Bootstrap, bootstrap}, {ControlPlane, controlPlane}} {
		series, err := manager.served.Series()
		problems = append(problems, err)
		for _, known := range append(Own(), Libraries()...) {
			if known.Manager != manager.name && known.Manager != Both {
				continue
			}
			if err := known.checkServed(series, story); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", manager.name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// checkServed looks at all series that have been scraped of a metric.
func (s Series) checkServed(all []scraped.Series, story string) error {
	found := false
	for _, one := range all {
		known, ok := Find([]Series{s}, one.Name)
		if !ok {
			continue
		}
		found = true
		if want, have := slices.Sorted(maps.Keys(known.Labels)), slices.Sorted(maps.Keys(one.Labels)); !slices.Equal(want, have) {
			return fmt.Errorf("%s has the labels %v, and queries take it to have %v", one, have, want)
		}
		for label, values := range known.Labels {
			if values != nil && !slices.Contains(values, one.Labels[label]) {
				return fmt.Errorf("%s: no query knows that label %s may be %q", one, label, one.Labels[label])
			}
		}
	}
	if where, special := onlyIn[s.Name]; !found && (!special || slices.Contains(where, story)) {
		return fmt.Errorf("%s was not scraped in %s", s.Name, story)
	}
	return nil
}
