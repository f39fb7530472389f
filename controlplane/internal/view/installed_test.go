// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

func TestInstalledOf(t *testing.T) {
	record := view.Installed{Attempt: "1", ClusterID: "id", InfraID: "infra"}
	tests := []struct {
		name        string
		annotations map[string]string
		want        view.Installed
		ok          bool
	}{
		{"never installed", nil, view.Installed{}, false},
		{"installed", map[string]string{controlplanev1.InstalledClusterAnnotation: record.String()}, record, true},
		{"another attempt is wanted", map[string]string{
			controlplanev1.InstalledClusterAnnotation: record.String(), controlplanev1.InstallAttemptAnnotation: "2",
		}, record, false},
		{"a broken record is no licence to install", map[string]string{controlplanev1.InstalledClusterAnnotation: "{"}, view.Installed{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			cp := controlPlane()
			cp.Annotations = tt.annotations
			got, ok := view.InstalledOf(cp)
			g.Expect(got).To(Equal(tt.want))
			g.Expect(ok).To(Equal(tt.ok))
		})
	}
}

func TestRecordOf(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane()
	cp.Annotations = map[string]string{controlplanev1.InstallAttemptAnnotation: "2"}
	record := view.RecordOf(cp, hivev1.ClusterMetadata{ClusterID: "id", InfraID: "infra"})
	g.Expect(record.String()).To(Equal(`{"attempt":"2","clusterID":"id","infraID":"infra"}`))
}
