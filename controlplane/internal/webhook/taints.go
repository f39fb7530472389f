// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// reservedTaints are keys that core refuses on a Machine, and reservedTaintPrefixes are those of kubelets and cloud providers: with one of
// them no Machine could be created (CONTRACT CP-14).
var (
	reservedTaints = []string{
		clusterv1.NodeUninitializedTaint.Key, clusterv1.NodeOutdatedRevisionTaint.Key, "node-role.kubernetes.io/master",
	}
	reservedTaintPrefixes = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"}
)

func validateTaints(taints []clusterv1.MachineTaint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, taint := range taints {
		if reservedTaint(taint.Key) {
			errs = append(errs, field.Invalid(path.Index(i).Child("key"), taint.Key,
				"is set by Cluster API, kubelets or cloud providers themselves: must be a key of your own"))
		}
	}
	return errs
}

func reservedTaint(key string) bool {
	if key == corev1.TaintNodeOutOfService {
		return false // The one of the kubelets' keys that is for people to set.
	}
	for _, prefix := range reservedTaintPrefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.Contains(reservedTaints, key)
}
