// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

func TestStarted(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane()
	cp.UID = "uid"
	record := view.StartedNow(cp, []string{"worker-1/b", "worker-0/a"})
	g.Expect(record.String()).To(Equal(`{"attempt":"1","controlPlane":"uid","workers":["worker-0/a","worker-1/b"]}`))
	read := func(value string) view.Started {
		cp.Annotations = map[string]string{controlplanev1.InstallationStartedAnnotation: value}
		return view.StartedOf(cp)
	}
	g.Expect(read(record.String())).To(Equal(record))
	g.Expect(read("broken")).To(BeZero())
	cp.UID = "moved"
	g.Expect(read(record.String())).To(BeZero(), "nothing has begun where a control plane was moved to")
	cp.Annotations = nil
	g.Expect(view.StartedOf(cp)).To(BeZero())
}
