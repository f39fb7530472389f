// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

func controlPlane() *controlplanev1.OpenshiftAssistedControlPlane {
	return &controlplanev1.OpenshiftAssistedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "uid"},
		Spec:       controlplanev1.OpenshiftAssistedControlPlaneSpec{Replicas: new(int32(3)), DistributionVersion: "4.20.4"},
	}
}
