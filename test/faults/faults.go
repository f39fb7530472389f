// SPDX-License-Identifier: Apache-2.0

// Package faults runs the sandbox with every fault that it knows.
package faults

import (
	"context"
	"fmt"
	"slices"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// Speed makes an installation take some seconds of simulated time.
const Speed = 3

// grouped are faults of a host that are tried in a cluster of three: clusterctl shows several Machines that are not ready as one line
// without their messages, and a report has to be seen all the same. Two before the installation, one of a host that alone would be
// installed at once, and one in it stand for the others.
var grouped = []string{"control-plane-never-boots", "host-disconnects", "wrong-boot-order"}

// Options are those with which the sandbox is run with a fault: in a namespace of that name.
func Options(fault *sandbox.Fault) sandbox.Options {
	number := slices.IndexFunc(sandbox.Faults(), func(f sandbox.Fault) bool { return f.Name == fault.Name })
	options := sandbox.Options{
		Fault: fault.Name, Namespace: fault.Name, Speed: Speed, Address: fmt.Sprintf("127.10.%d.5", 100+number), Topology: sandbox.SNO,
	}
	switch {
	case fault.NeedsWorker:
		options.Topology, options.Workers = sandbox.HA, ptr.To(1)
	case fault.NeedsPeers, slices.Contains(grouped, fault.Name):
		options.Topology = sandbox.Compact
	}
	return options
}

// Inspect lets a host be found as the fault says after which its namespace is called.
func Inspect(host *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails) {
	for _, fault := range sandbox.Faults() {
		if fault.Name == host.Namespace && fault.Inspect != nil {
			fault.Inspect(host, hardware)
		}
	}
}

// End deletes a cluster that has reported its fault. Left alone, it would try again for as long as others run in its World, and take their
// time: the cluster, and Metal3 with its hosts.
func End(ctx context.Context, world *sandbox.World, namespace string) error {
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := world.Client.List(ctx, hosts, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list the BareMetalHosts: %w", err)
	}
	for i := range hosts.Items {
		world.Metal3.Faults().Clear(client.ObjectKeyFromObject(&hosts.Items[i]))
	}
	if err := world.Client.DeleteAllOf(ctx, &clusterv1.Cluster{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete the cluster: %w", err)
	}
	return nil
}
