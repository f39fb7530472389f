// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// seedNamespace and seedCluster are what the recorded cluster is called; the first is found nowhere else in its objects.
	seedNamespace = "seed-namespace"
	seedCluster   = "site"
	// seedAddress is where its API is, port 6443.
	seedAddress = "127.10.42.5"

	recordTimeout = 5 * time.Minute
	recordSpeed   = 3
)

// Record installs a single-node cluster in a sandbox, adds a worker whose host boots and never registers, and writes all objects of the
// cluster to a file: what ReadSeed reads.
func Record(ctx context.Context, path string, progress io.Writer) (err error) {
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{Progress: progress, Speed: recordSpeed})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	request := sandbox.ClusterRequest{Namespace: seedNamespace, Name: seedCluster, Topology: sandbox.SNO, Address: seedAddress}
	if err := world.CreateInputsFor(ctx, request, 2); err != nil {
		return err
	}
	if err := world.ApplyCluster(ctx, request); err != nil {
		return err
	}
	if err := world.AwaitCluster(ctx, request.Key(), recordTimeout, "the cluster", world.Running(request.Key(), 1)); err != nil {
		return err
	}
	if err := addSilentWorker(ctx, world, request.Key()); err != nil {
		return err
	}
	objects, err := capture(ctx, world.Client, seedNamespace)
	if err != nil {
		return err
	}
	return writeSeed(path, objects)
}

// addSilentWorker adds a Machine and returns when its config waits for the Agent of its host.
func addSilentWorker(ctx context.Context, world *sandbox.World, cluster types.NamespacedName) error {
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := world.Client.List(ctx, hosts, client.InNamespace(cluster.Namespace)); err != nil {
		return fmt.Errorf("list BareMetalHosts: %w", err)
	}
	for i := range hosts.Items {
		if hosts.Items[i].Spec.ConsumerRef == nil {
			world.Assisted.Faults().HostNeverBoots(client.ObjectKeyFromObject(&hosts.Items[i]), true)
		}
	}
	if err := world.AddWorker(ctx, cluster); err != nil {
		return err
	}
	return world.AwaitCluster(ctx, cluster, recordTimeout, "a host that boots", func(ctx context.Context) (string, error) {
		configs := &bootstrapv1.OpenshiftAssistedConfigList{}
		if err := world.Client.List(ctx, configs, client.InNamespace(cluster.Namespace)); err != nil {
			return "", fmt.Errorf("list OpenshiftAssistedConfigs: %w", err)
		}
		for i := range configs.Items {
			condition := conditions.Get(&configs.Items[i], bootstrapv1.HostRecognizedCondition)
			if condition != nil && strings.Contains(condition.Message, "has not registered") {
				return "", nil
			}
		}
		return "no config waits for an Agent", nil
	})
}

// Seed is a recorded cluster.
type Seed struct {
	// Recorded is when, in the time of the API server: every other time in the objects is before it.
	Recorded time.Time
	// Objects are in an order in which each may be made.
	Objects []*unstructured.Unstructured
}

// writeSeed writes one object a line. The credentials of the sandbox's cluster, which is gone, are left out: who uses the seed has others.
func writeSeed(path string, objects []*unstructured.Unstructured) error {
	var out bytes.Buffer
	header, err := json.Marshal(map[string]time.Time{"recorded": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return fmt.Errorf("encode the time of the seed: %w", err)
	}
	out.Write(append(header, '\n'))
	for _, o := range objects {
		if isKubeconfig(o) {
			unstructured.RemoveNestedField(o.Object, "data")
		}
		line, err := json.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		out.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the seed: %w", err)
	}
	return nil
}
