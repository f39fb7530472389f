// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxExtraWrites is how many writes more than without a fault a story may take with one.
const maxExtraWrites = 5

// Ending is how a story ends.
type Ending struct {
	// Hub is the management cluster.
	Hub *Hub
	// Others is what is left elsewhere, such as in the installed cluster.
	Others string
	// MoreWrites is how many writes more than usual the story may take with a fault.
	MoreWrites int
}

// Every tells a story without a fault, and then once for every call and every mode that may happen to it. Of the calls every n-th is tried,
// all when stride is 1.
func Every(t *testing.T, modes []Mode, stride int, tell func(*testing.T, *Calls) Ending) {
	t.Helper()
	clean := told(t, &Calls{}, tell)
	for _, mode := range modes {
		var points []int
		for i, c := range clean.calls {
			if mode.happensTo(c.kind) {
				points = append(points, i)
			}
		}
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			tried := 0
			for n := 0; n < len(points); n += stride {
				clean.compare(t, points[n], told(t, &Calls{mode: mode, at: points[n] + 1}, tell))
				tried++
			}
			t.Logf("%d of %d calls tried", tried, len(points))
		})
	}
}

// Alike tells a story, and the same in worlds that behave worse: all have to end alike, with as many writes but for a few.
func Alike(t *testing.T, story func(*testing.T, *Calls) Ending, worse map[string]func(*testing.T, *Calls) Ending) {
	t.Helper()
	clean := told(t, &Calls{}, story)
	for name, tell := range worse {
		t.Run(name, func(t *testing.T) { clean.compareEnds(t, name, 0, told(t, &Calls{}, tell)) })
	}
}

// outcome is what came of a story.
type outcome struct {
	mode    Mode
	calls   []call
	created map[string]int
	objects map[string]string
	others  string
	// writes counts those that were made, and effective those that have changed something.
	writes, effective int
	more              int
}

func told(t *testing.T, calls *Calls, tell func(*testing.T, *Calls) Ending) outcome {
	t.Helper()
	defer func() {
		if t.Failed() && calls.at > 0 && calls.at <= len(calls.log) {
			t.Logf("call %d of them, %s: %s", calls.at, calls.mode, calls.log[calls.at-1].name)
		}
	}()
	ending := tell(t, calls)
	o := outcome{
		mode:      calls.mode,
		calls:     calls.log,
		created:   calls.created,
		objects:   ending.Hub.described(),
		others:    ending.Others,
		effective: calls.effective,
		more:      ending.MoreWrites,
	}
	for _, c := range calls.log {
		if c.kind == write {
			o.writes++
		}
	}
	return o
}

// compare fails the test when a story with a fault ended otherwise than without one.
func (o outcome) compare(t *testing.T, at int, with outcome) {
	t.Helper()
	name := fmt.Sprintf("call %d, %s", at+1, o.calls[at].name)
	if len(with.calls) <= at || with.calls[at] != o.calls[at] {
		t.Errorf("%s: the story was another one before that", name)
		return
	}
	o.compareEnds(t, name, at, with)
}

// compareEnds fails the test when a story ended otherwise than without what has happened from a call on.
func (o outcome) compareEnds(t *testing.T, name string, from int, with outcome) {
	t.Helper()
	if diff := cmp.Diff(o.objects, with.objects); diff != "" {
		t.Errorf("%s: what is left (-without a fault +with it):\n%s", name, diff)
	}
	if diff := cmp.Diff(o.others, with.others); diff != "" {
		t.Errorf("%s: what is left elsewhere (-without a fault +with it):\n%s", name, diff)
	}
	if !maps.Equal(o.created, with.created) {
		t.Errorf("%s: created %v, and without a fault %v", name, with.created, o.created)
	}
	extra := with.writes - o.writes
	if with.mode == WatchCloses {
		extra = with.effective - o.effective // Until the watch is open again, what was written is tried again, and changes nothing.
	}
	if extra > maxExtraWrites+with.more {
		t.Errorf("%s: %d writes more than without a fault:\n%s", name, extra, with.writesAfter(from))
	}
}

// writesAfter are the writes that were made from a call on.
func (o outcome) writesAfter(at int) string {
	var b strings.Builder
	for _, c := range o.calls[at:] {
		if c.kind == write {
			b.WriteString("  " + c.name + "\n")
		}
	}
	return b.String()
}

var (
	uidsOfHub = regexp.MustCompile(`uid-\d+`)
	tokens    = regexp.MustCompile(`issued-token-\d+-`)
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

// described are all objects as JSON, by their names, without what differs each time: times, versions, and the numbers in UIDs.
func (h *Hub) described() map[string]string {
	names := map[types.UID]string{}
	all := h.all()
	for _, o := range all {
		names[o.GetUID()] = "UID of " + h.nameOf(o)
	}
	described := map[string]string{}
	for _, o := range all {
		o.SetResourceVersion("")
		annotations := o.GetAnnotations()
		delete(annotations, touched)
		if len(annotations) == 0 {
			annotations = nil
		}
		o.SetAnnotations(annotations)
		data, err := json.MarshalIndent(readable(o), "", " ")
		if err != nil {
			panic(err)
		}
		text := uidsOfHub.ReplaceAllStringFunc(string(data), func(uid string) string {
			if name := names[types.UID(uid)]; name != "" {
				return name
			}
			return "UID of what is gone"
		})
		text = tokens.ReplaceAllString(text, "a token")
		described[h.nameOf(o)] = times.ReplaceAllString(text, "then")
	}
	return described
}

// readable is an object whose data can be read: that of Secrets is encoded.
func readable(o client.Object) client.Object {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return o
	}
	secret.StringData = map[string]string{}
	for key, value := range secret.Data {
		secret.StringData[key] = string(value)
	}
	secret.Data = nil
	return secret
}
