// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Fill reads once, when the manager begins to lead, the kinds that passes read and no controller watches from the beginning. The first read
// of a kind begins to fill its cache and waits for that, for a tenth of a second at least: without Fill, the first pass waits that long for
// each kind. A kind that cannot be read is left to the pass that needs it. A standby fills no caches: it stays small.
type Fill struct {
	// Client is the manager's client.
	Client client.Reader
	// Metal3 are kinds of Metal3 that references name.
	Metal3 []string
	// Lists are empty lists of other kinds. A list waits until its cache is filled, or the manager ends.
	Lists []client.ObjectList
	// Log gets a line, at verbosity 2, for each kind that cannot be read.
	Log logr.Logger
}

// Start implements manager.Runnable.
func (f *Fill) Start(ctx context.Context) error {
	for _, kind := range f.Metal3 {
		_, err := infrastructure.Get(ctx, f.Client, clusterv1.ContractVersionedObjectReference{
			APIGroup: metal3.InfrastructureGroup, Kind: kind, Name: "none", // It need not exist: the cache is filled to find that out.
		}, "")
		f.tell(kind, err)
	}
	for _, list := range f.Lists {
		f.tell(fmt.Sprintf("%T", list), f.Client.List(ctx, list, client.Limit(1)))
	}
	return nil
}

func (f *Fill) tell(kind string, err error) {
	if err != nil {
		f.Log.V(2).Info("A kind was not read at the start: the first pass that needs it reads it", "kind", kind, "reason", err.Error())
	}
}
