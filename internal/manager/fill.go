// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// fillTimeout bounds the first read of one kind. Its cache goes on to fill after it.
const fillTimeout = 5 * time.Second

// Fill reads once, when the manager starts, the kinds that passes read and no controller watches. The first read of a kind begins to fill
// its cache and waits for that, for a tenth of a second at least: without Fill, the first pass of a manager waits for three or four kinds
// in turn. A kind that cannot be read is left to the pass that needs it. A standby reads them too, so that it is ready when it leads.
type Fill struct {
	// Client is the manager's client.
	Client client.Reader
	// Metal3 are kinds of Metal3 that references name.
	Metal3 []string
	// Lists are of other kinds.
	Lists []client.ObjectList
	// Log is told of kinds that cannot be read.
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
		f.tell(fmt.Sprintf("%T", list), f.list(ctx, list))
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (f *Fill) NeedLeaderElection() bool { return false }

func (f *Fill) list(ctx context.Context, list client.ObjectList) error {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	return f.Client.List(ctx, list, client.Limit(1))
}

func (f *Fill) tell(kind string, err error) {
	if err != nil {
		f.Log.Info("The cache of a kind is not filled yet", "kind", kind, "reason", err.Error())
	}
}
