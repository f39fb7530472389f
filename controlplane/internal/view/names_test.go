// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

func TestImageSetName(t *testing.T) {
	long := strings.Repeat("n", 63)
	tests := map[string]types.NamespacedName{
		"a-b.c": {Namespace: "a-b", Name: "c"}, "a.b-c": {Namespace: "a", Name: "b-c"},
		long + "." + long: {Namespace: long, Name: long},
	}
	for want, key := range tests {
		if got := view.ImageSetName(key); got != want {
			t.Errorf("ImageSetName(%s) = %q, want %q", key, got, want)
		}
	}
}

func TestImageSetNameShortened(t *testing.T) {
	base := strings.Repeat("x", 172) + "." + strings.Repeat("y", 79)
	first := view.ImageSetName(types.NamespacedName{Namespace: "ns", Name: base + "1"})
	second := view.ImageSetName(types.NamespacedName{Namespace: "ns", Name: base + "2"})
	if first == second {
		t.Errorf("two names were shortened to the same %q", first)
	}
	for _, name := range []string{first, second} {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%q is no name of an object: %v", name, problems)
		}
	}
}

func TestInherited(t *testing.T) {
	g := NewWithT(t)
	now, former, other := controlPlane(), controlPlane(), controlPlane()
	former.UID, other.UID, other.Namespace = "former", "other", "elsewhere"
	of := func(i *controlplanev1.OpenshiftAssistedControlPlane) *hivev1.ClusterImageSet {
		return &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Labels: view.OwnerLabels(i)}}
	}
	g.Expect(view.OwnedBy(of(now), now)).To(BeTrue())
	g.Expect(view.Inherited(of(now), now)).To(BeFalse())
	g.Expect(view.Inherited(of(former), now)).To(BeTrue())
	g.Expect(view.Inherited(of(other), now)).To(BeFalse())
	g.Expect(view.Inherited(&hivev1.ClusterImageSet{}, now)).To(BeFalse(), "a user's own")
}
