// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// discoveryFields are the fields of an OpenshiftAssistedConfigSpec that say how a host is discovered. The system that is installed on it
// does not depend on them.
var discoveryFields = sets.New("boot", "discovery", "pullSecretRef", "sshAuthorizedKey", "proxy", "additionalNTPSources", "ntpSources",
	"additionalTrustBundle", "additionalTrustBundleRef", "mirrorRegistryRef", "networkDiscoveryDelaySeconds", "hostIdentity")

// Differences lists how a Machine differs from what the control plane asks for, in words and in a fixed order; it is up to date when there
// are none (CONTRACT CP-45).
func Differences(v *view.View, m *clusterv1.Machine) []string {
	var differences []string
	if wanted := v.ControlPlane.Spec.Version; m.Spec.Version != wanted {
		differences = append(differences, fmt.Sprintf("Version %s, %s required", m.Spec.Version, wanted))
	}
	return append(differences, outdatedBy(v, m)...)
}

// outdatedBy lists the differences that only another host, or another installation of the same one, would mend (DESIGN D27).
func outdatedBy(v *view.View, m *clusterv1.Machine) []string {
	var differences []string
	if infrastructure := v.Machines.Infra[m.Name]; infrastructure != nil {
		ref := v.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef
		wanted := ref.Kind + "." + ref.APIGroup + " " + ref.Name
		kind, hasKind := infrastructure.GetAnnotations()[clusterv1.TemplateClonedFromGroupKindAnnotation]
		name, hasName := infrastructure.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
		// One that was adopted may have been made by hand: nobody knows from what.
		if have := kind + " " + name; hasKind && hasName && have != wanted {
			differences = append(differences, fmt.Sprintf("Infrastructure machine made from %s, %s required", have, wanted))
		}
	}
	if config := v.Machines.Configs[m.Name]; config != nil {
		fields := changedFields(config.Spec, v.ControlPlane.Spec.OpenshiftAssistedConfigSpec, view.HasNode(m))
		if len(fields) > 0 {
			differences = append(differences, "OpenshiftAssistedConfig differs from spec.openshiftAssistedConfigSpec in "+strings.Join(fields, ", "))
		}
	}
	if after := v.ControlPlane.Spec.Rollout.After; expired(v, m) {
		differences = append(differences, fmt.Sprintf("Machine is older than spec.rollout.after (%s)", after.UTC().Format(time.RFC3339)))
	}
	return differences
}

// changedFields are the names of the fields in which two specs of a config ask for something else: who writes a default down, or another
// order of a set, asks for the same. Of an installed host only those count that its system depends on.
func changedFields(have, wanted bootstrapv1.OpenshiftAssistedConfigSpec, installed bool) []string {
	var fields []string
	haveValue, wantedValue := reflect.ValueOf(have.Effective()), reflect.ValueOf(wanted.Effective())
	for i := range haveValue.NumField() {
		name, _, _ := strings.Cut(haveValue.Type().Field(i).Tag.Get("json"), ",")
		if installed && discoveryFields.Has(name) {
			continue
		}
		if !equality.Semantic.DeepEqual(haveValue.Field(i).Interface(), wantedValue.Field(i).Interface()) {
			fields = append(fields, name)
		}
	}
	return fields
}

// expired reports whether spec.rollout.after has passed, and the Machine is older (CONTRACT CP-61).
func expired(v *view.View, m *clusterv1.Machine) bool {
	after := v.ControlPlane.Spec.Rollout.After
	return !after.IsZero() && !v.Now.Before(after.Time) && m.CreationTimestamp.Before(&after)
}
