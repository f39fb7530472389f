// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recorded is what Record wrote. Record it anew when the objects of a cluster look otherwise: what the managers themselves write they bring
// up to date when a hub is prepared.
//
//go:embed testdata/seed.jsonl
var recorded []byte

// moments are the times in an object.
var moments = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z`)

// readSeed returns the objects of a recorded cluster as if it had been recorded now: tokens and hosts that wait have a time to live.
func readSeed(text []byte, now time.Time) ([]*unstructured.Unstructured, error) {
	var header struct{ Recorded time.Time }
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(first, &header); err != nil {
		return nil, fmt.Errorf("read when the seed was recorded: %w", err)
	}
	var objects []*unstructured.Unstructured
	for line := range bytes.Lines(shifted(rest, now.Sub(header.Recorded).Truncate(time.Second))) {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(line, &o.Object); err != nil {
			return nil, fmt.Errorf("read an object of the seed: %w", err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// shifted moves all times in a text.
func shifted(text []byte, by time.Duration) []byte {
	return moments.ReplaceAllFunc(text, func(moment []byte) []byte {
		at, err := time.Parse(time.RFC3339, string(moment)) // It takes fractions of a second too.
		if err != nil {
			return moment
		}
		return at.Add(by).AppendFormat(nil, time.RFC3339Nano)
	})
}

const (
	// installerKubeconfig is the Secret in which assisted-service publishes credentials.
	installerKubeconfig = seedCluster + "-control-plane-admin-kubeconfig"
	// kubeconfigKey is where that Secret has the kubeconfig.
	kubeconfigKey = "kubeconfig"
)

// isKubeconfig reports whether an object is a Secret with credentials of an installed cluster.
func isKubeconfig(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Secret" && slices.ContainsFunc(
		[]string{"-kubeconfig", "-installer-credentials", "-admin-password"},
		func(suffix string) bool { return strings.HasSuffix(o.GetName(), suffix) },
	)
}

// withCredentials gives the seed the kubeconfig of a cluster that runs, as assisted-service publishes it. What the managers make from it is
// left out, for them to make.
func withCredentials(objects []*unstructured.Unstructured, kubeconfig []byte) ([]*unstructured.Unstructured, error) {
	var kept []*unstructured.Unstructured
	var errs []error
	for _, o := range objects {
		switch {
		case o.GetName() == installerKubeconfig:
			data := map[string]any{kubeconfigKey: base64.StdEncoding.EncodeToString(kubeconfig)}
			errs = append(errs, unstructured.SetNestedField(o.Object, data, "data"))
		case isKubeconfig(o):
			continue
		}
		kept = append(kept, o)
	}
	return kept, errors.Join(errs...)
}

// nested is a string in an object; empty when there is none.
func nested(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

// find returns the only object of a kind for which is holds.
func find(objects []*unstructured.Unstructured, kind string, is func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind && is(o) {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("the seed has %d objects of kind %s where one is expected", len(found), kind)
	}
	return found[0], nil
}
