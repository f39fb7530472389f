// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// certificatesPoll is how often an installed cluster, of which no watch tells, is looked at.
const certificatesPoll = 200 * time.Millisecond

// foreignNames are what a kubelet must not get a serving certificate for: a name and an address that no Node has.
var foreignNames = []string{"api.foreign.example.com", "192.0.2.99"}

// certificates are the requests of one check: those of honest kubelets, and what each of the others asks for, by name.
type certificates struct {
	controlPlane types.NamespacedName
	nodes        []string
	renewals     []string
	foreign      map[string]string
}

// VerifyServingCertificates checks what becomes of the requests of kubelets for serving certificates (DESIGN D7). That with which every
// Node started is approved, and so is a renewal; a request for a name or an address of somebody else is left alone, with an event that
// names it.
func (w *World) VerifyServingCertificates(ctx context.Context, cluster types.NamespacedName, timeout time.Duration) error {
	requests, err := w.requestCertificates(ctx, cluster)
	if err != nil {
		return err
	}
	installed, err := w.Installed(cluster)
	if err != nil {
		return err
	}
	var problem error
	err = wait.PollUntilContextTimeout(ctx, certificatesPoll, timeout, true, func(ctx context.Context) (bool, error) {
		problem = w.checkCertificates(ctx, installed, requests)
		return problem == nil, nil
	})
	return errors.Join(err, problem)
}

// requestCertificates lets the kubelet of every Node renew its certificate, and one of them ask for more. The order is on purpose: when the
// renewals are approved, the others were looked at before.
func (w *World) requestCertificates(ctx context.Context, cluster types.NamespacedName) (certificates, error) {
	requests := certificates{controlPlane: InstallKey(cluster), foreign: map[string]string{}}
	machines := &clusterv1.MachineList{}
	if err := w.Client.List(ctx, machines, ofCluster(cluster)...); err != nil {
		return requests, fmt.Errorf("cannot list the Machines of Cluster %s: %w", cluster, err)
	}
	for i := range machines.Items {
		if node := machines.Items[i].Status.NodeRef.Name; node != "" {
			requests.nodes = append(requests.nodes, node)
		}
	}
	if len(requests.nodes) == 0 {
		return requests, fmt.Errorf("no Machine of Cluster %s has a Node", cluster)
	}
	for _, other := range foreignNames {
		name, err := w.Workload.RequestServing(ctx, requests.controlPlane, requests.nodes[0], other)
		if err != nil {
			return requests, err
		}
		requests.foreign[name] = other
	}
	for _, node := range requests.nodes {
		name, err := w.Workload.RequestServing(ctx, requests.controlPlane, node)
		if err != nil {
			return requests, err
		}
		requests.renewals = append(requests.renewals, name)
	}
	return requests, nil
}

func (w *World) checkCertificates(ctx context.Context, installed client.Client, requests certificates) error {
	list := &certificatesv1.CertificateSigningRequestList{}
	selector := client.MatchingFields{"spec.signerName": certificatesv1.KubeletServingSignerName}
	if err := installed.List(ctx, list, selector); err != nil {
		return fmt.Errorf("cannot list the CertificateSigningRequests of %s: %w", requests.controlPlane, err)
	}
	events := &eventsv1.EventList{}
	if err := w.Client.List(ctx, events, client.InNamespace(requests.controlPlane.Namespace)); err != nil {
		return fmt.Errorf("cannot list the events of %s: %w", requests.controlPlane, err)
	}
	return errors.Join(requests.checkApprovals(list.Items), requests.checkEvents(events.Items))
}

// checkApprovals checks what was approved.
func (c certificates) checkApprovals(list []certificatesv1.CertificateSigningRequest) error {
	approved, started := map[string]bool{}, map[string]bool{}
	var problems []error
	for i := range list {
		request := &list[i]
		approved[request.Name] = slices.ContainsFunc(
			request.Status.Conditions,
			func(condition certificatesv1.CertificateSigningRequestCondition) bool {
				return condition.Type == certificatesv1.CertificateApproved
			},
		)
		if other, foreign := c.foreign[request.Name]; foreign && len(request.Status.Conditions) > 0 {
			problems = append(problems, fmt.Errorf("CertificateSigningRequest %s for %s is to be left alone, and is %s",
				request.Name, other, request.Status.Conditions[0].Type))
		}
		if approved[request.Name] && !slices.Contains(c.renewals, request.Name) {
			started[request.Spec.Username] = true
		}
	}
	for i, node := range c.nodes {
		if !started["system:node:"+node] {
			problems = append(problems, fmt.Errorf("the serving certificate with which Node %s started is not approved", node))
		}
		if !approved[c.renewals[i]] {
			problems = append(
				problems,
				fmt.Errorf("CertificateSigningRequest %s, with which Node %s renews its serving certificate, is not approved", c.renewals[i], node),
			)
		}
	}
	return errors.Join(problems...)
}

// checkEvents checks that the control plane tells of every request that was left alone, and why.
func (c certificates) checkEvents(events []eventsv1.Event) error {
	var problems []error
	for name, other := range c.foreign {
		if !slices.ContainsFunc(events, func(event eventsv1.Event) bool {
			return event.Reason == controlplanev1.EventServingCertificateNotApproved && event.Regarding.Name == c.controlPlane.Name &&
				strings.Contains(event.Note, name) && strings.Contains(event.Note, other)
		}) {
			problems = append(
				problems, fmt.Errorf("no event of %s tells that CertificateSigningRequest %s for %s is left alone", c.controlPlane, name, other),
			)
		}
	}
	return errors.Join(problems...)
}
