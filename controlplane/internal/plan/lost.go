// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"time"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

const (
	// maxLost is how many attempts begin by themselves because objects vanished: whoever deletes them again and again must not have the hosts
	// power-cycled for ever.
	maxLost = 3
	// lostBackoff is how long the second of them waits after the first began; each later one waits twice as long as the one before.
	lostBackoff = 10 * time.Minute
)

// Lost is what the annotation LostInstallationsAnnotation records.
type Lost struct {
	// Count is the number of attempts that have begun by themselves; Last is when the last one did.
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
}

// LostOf returns the record of a control plane; an empty one when there is none. One that somebody broke counts as many attempts: a new
// one, which takes hosts down, is not begun on a guess.
func LostOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) Lost {
	value, ok := controlPlane.Annotations[controlplanev1.LostInstallationsAnnotation]
	if !ok {
		return Lost{}
	}
	var record Lost
	if err := json.Unmarshal([]byte(value), &record); err != nil || record.Count < 0 {
		return Lost{Count: maxLost}
	}
	return record
}

// Next is when the next attempt may begin by itself; ok is false when the user has to ask for it.
func (l Lost) Next() (at time.Time, ok bool) {
	switch {
	case l.Count >= maxLost:
		return time.Time{}, false
	case l.Count == 0:
		return time.Time{}, true
	default:
		return l.Last.Add(lostBackoff << (l.Count - 1)), true
	}
}

// Again is the annotation's value when one more attempt begins by itself.
func (l Lost) Again(now time.Time) string {
	value, err := json.Marshal(Lost{Count: l.Count + 1, Last: now.UTC().Truncate(time.Second)})
	if err != nil {
		return "" // A number and a time can always be encoded.
	}
	return string(value)
}
