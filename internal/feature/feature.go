// SPDX-License-Identifier: Apache-2.0

// Package feature holds the feature gates of both managers. So far none of the product's features is behind a gate: the gates are those of
// the logging flags, and AllAlpha and AllBeta.
package feature

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/featuregate"
	logsv1 "k8s.io/component-base/logs/api/v1"
)

// features are the product's own gates: what is there, how mature it is and whether it is on by default. A gate is removed together with
// what it gates, or two minor versions after the feature has become GA.
var features = map[featuregate.Feature]featuregate.FeatureSpec{}

// New returns the gates with their defaults. The flag --feature-gates changes them; after that they are only read.
func New() featuregate.MutableVersionedFeatureGate {
	gates := featuregate.NewFeatureGate()
	utilruntime.Must(gates.Add(features))
	utilruntime.Must(logsv1.AddFeatureGates(gates))
	return gates
}
