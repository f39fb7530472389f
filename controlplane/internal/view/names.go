// SPDX-License-Identifier: Apache-2.0

package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/util/labels/format"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

const (
	// maxNameLength is the longest name of an object.
	maxNameLength = 253
	// nameHashLength is the number of hexadecimal digits that keep shortened names apart.
	nameHashLength = 16
)

// ImageSetName is the name of the cluster-scoped ClusterImageSet of a control plane: <namespace>.<name>, shortened with a hash past 253
// characters. A namespace holds no dot, so a-b/c and a/b-c never meet (DESIGN D13).
func ImageSetName(controlPlane types.NamespacedName) string {
	full := controlPlane.Namespace + "." + controlPlane.Name
	if len(full) <= maxNameLength {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	prefix := strings.TrimRight(full[:maxNameLength-nameHashLength-1], ".-")
	return prefix + "-" + hex.EncodeToString(sum[:])[:nameHashLength]
}

// OwnerLabels are the labels of objects of hive and assisted-service that are made for a control plane. Only objects with its UID are ever
// deleted (DESIGN D13).
func OwnerLabels(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) map[string]string {
	return map[string]string{
		controlplanev1.OwnerNamespaceLabel: controlPlane.Namespace, controlplanev1.OwnerNameLabel: format.MustFormatValue(controlPlane.Name),
		controlplanev1.OwnerUIDLabel: string(controlPlane.UID),
	}
}

// OwnedBy reports whether an object has the labels of OwnerLabels.
func OwnedBy(o metav1.Object, controlPlane *controlplanev1.OpenshiftAssistedControlPlane) bool {
	return o.GetLabels()[controlplanev1.OwnerUIDLabel] == string(controlPlane.UID)
}

// Inherited reports whether an object was made for a control plane of the same namespace and name that exists no more, because it was moved
// away or restored: names are unique, so it can be of nobody else (CONTRACT CTL-46).
func Inherited(o metav1.Object, controlPlane *controlplanev1.OpenshiftAssistedControlPlane) bool {
	wanted, labels := OwnerLabels(controlPlane), o.GetLabels()
	return !OwnedBy(o, controlPlane) && labels[controlplanev1.OwnerUIDLabel] != "" &&
		labels[controlplanev1.OwnerNamespaceLabel] == wanted[controlplanev1.OwnerNamespaceLabel] &&
		labels[controlplanev1.OwnerNameLabel] == wanted[controlplanev1.OwnerNameLabel]
}
