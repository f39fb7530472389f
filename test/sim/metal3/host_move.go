// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"fmt"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

// movedAway tells whether `clusterctl move` deletes the host, whose finalizers it strips in the next request. What BMO may begin in these
// milliseconds is not simulated.
func movedAway(host *bmov1alpha1.BareMetalHost) bool {
	_, moved := host.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return moved
}

// takeStatusAnnotation gives a host that was moved here the status that CAPM3 has kept in an annotation (M3-64), and the hardware from its
// HardwareData, which moves with it. The annotation of a host that has a status is dropped. It tells whether one of them is to be done.
func (p *hostPass) takeStatusAnnotation() (bool, error) {
	text, found := p.host.Annotations[bmov1alpha1.StatusAnnotation]
	if !found {
		return false, nil
	}
	if !equality.Semantic.DeepEqual(p.host.Status, bmov1alpha1.BareMetalHostStatus{}) {
		delete(p.host.Annotations, bmov1alpha1.StatusAnnotation)
		return true, nil
	}
	if err := json.Unmarshal([]byte(text), &p.host.Status); err != nil {
		return false, fmt.Errorf("read the status in an annotation of BareMetalHost %s: %w", client.ObjectKeyFromObject(p.host), err)
	}
	p.host.Status.HardwareDetails = p.Hardware(p.host.DeepCopy())
	return true, nil
}
