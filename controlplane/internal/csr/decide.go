// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// userPrefix is what the user names of kubelets begin with.
const userPrefix = "system:node:"

const (
	// lookAgainInterval is how often a refused request is looked at again, and patience for how long: a kubelet may ask for a certificate for
	// new addresses before its Node has them.
	lookAgainInterval = time.Minute
	patience          = 15 * time.Minute
)

// decision is what a pass does.
type decision struct {
	// approve are the requests to approve.
	approve []approval
	// refuse are the requests that are left alone, with the reasons.
	refuse []refusal
	// lookAgain is when the refused requests are worth another look; 0 is never.
	lookAgain time.Duration
}

// approval is a request that is approved for a Machine.
type approval struct {
	request *certificatesv1.CertificateSigningRequest
	machine string
}

// refusal is a request that is left alone for a reason. It is not denied: an administrator may know better.
type refusal struct {
	request *certificatesv1.CertificateSigningRequest
	reason  string
}

// decide says what becomes of every pending request. It is pure.
func decide(s *scope) decision {
	var d decision
	for i := range s.pending {
		request := &s.pending[i]
		name := nodeName(request)
		machine, ours := s.machines[name]
		node := s.nodes[name]
		if name != "" && (!ours || node == nil) {
			continue // A Node of somebody else, or of a Machine whose nodeRef is not set yet; setting it triggers a pass.
		}
		err := s.check(request, node)
		if err == nil {
			d.approve = append(d.approve, approval{request, machine})
			continue
		}
		d.refuse = append(d.refuse, refusal{request, err.Error()})
		if node != nil && s.now.Sub(request.CreationTimestamp.Time) < patience {
			d.lookAgain = lookAgainInterval
		}
	}
	return d
}

// isPending reports whether a request is for a kubelet's serving certificate and nobody has approved or denied it.
func isPending(request *certificatesv1.CertificateSigningRequest) bool {
	return request.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(request.Status.Conditions) == 0 &&
		len(request.Status.Certificate) == 0
}

// nodeName is the name of the Node that has sent a request; empty when it was sent by something else.
func nodeName(request *certificatesv1.CertificateSigningRequest) string {
	name, isNode := strings.CutPrefix(request.Spec.Username, userPrefix)
	if !isNode {
		return ""
	}
	return name
}
