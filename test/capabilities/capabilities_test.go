// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// speed makes hosts boot within a second.
	speed = 5

	readTimeout   = 3 * time.Minute
	deleteTimeout = 3 * time.Minute

	// apiAddress is what the pages call the address of their cluster's API. Nothing listens there, so no installation is ever completed.
	apiAddress     = "192.0.2.10"
	machineNetwork = "192.0.2.0/24"

	// loopbackAddress is where the APIs of clusters without virtual addresses do listen, each on its own: those are installed to the end, as
	// far as their pages wait for it.
	loopbackAddress = "127.30.%d.1"
)

// pagesAtOnce are tried at a time: a page waits, for most of its time, for objects to be deleted.
const pagesAtOnce = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", pagesAtOnce); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestPages(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	g := NewWithT(t)
	root, err := localcontrolplane.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	pages, err := readPages(filepath.Join(root, "docs", "capabilities"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pages).NotTo(BeEmpty())
	world, err := sandbox.NewWorld(context.WithoutCancel(t.Context()), sandbox.WorldOptions{Speed: speed})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Error(err) // Of what ends a test at once, Go shows nothing here: it runs after parallel sub-tests.
		}
	})
	for i, p := range pages {
		address := apiAddress
		if !p.bringsAddresses() {
			address = fmt.Sprintf(loopbackAddress, i+1)
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			try(t, world, p, address)
		})
	}
}

// try applies a page, waits for what it says and deletes the cluster until nothing of it is left.
func try(t *testing.T, world *sandbox.World, p page, address string) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	request := sandbox.ClusterRequest{Namespace: p.name, Name: "demo", Topology: sandbox.HA, Workers: 1, Address: address,
		Variables: map[string]string{"OPENSHIFT_MACHINE_NETWORK_CIDR": machineNetwork}}
	// No host more than Machines: which of several Metal3 gives to a Machine, nobody can foresee.
	hosts := 0
	if p.readsHosts() {
		hosts = p.replicas(request.ControlPlaneReplicas()) + request.Workers + p.deployments() - p.hosts()
	}
	g.Expect(world.CreateInputsFor(ctx, request, hosts)).To(Succeed())
	manifests, err := world.Render(ctx, request)
	g.Expect(err).NotTo(HaveOccurred())
	cluster, err := decode(string(manifests))
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := p.overlay(cluster, request.Namespace)
	g.Expect(err).NotTo(HaveOccurred())
	apply(ctx, g, t.TempDir(), world, objects)

	g.Expect(world.AwaitCluster(ctx, request.Key(), readTimeout, "what the page says", func(ctx context.Context) (string, error) {
		var missing []string
		for _, wanted := range p.reads {
			found, err := closest(ctx, world, request.Namespace, wanted)
			if err != nil {
				return "", err
			}
			missing = append(missing, found...)
		}
		return strings.Join(missing, "\n"), nil
	})).To(Succeed())
	g.Expect(world.DeleteCluster(ctx, request.Key(), deleteTimeout)).To(Succeed())
}

// apply does what a user's kubectl apply of one file does.
func apply(ctx context.Context, g *WithT, dir string, world *sandbox.World, objects []*unstructured.Unstructured) {
	var file bytes.Buffer
	for _, object := range objects {
		data, err := yaml.Marshal(object.Object)
		g.Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&file, "---\n%s", data)
	}
	path := filepath.Join(dir, "page.yaml")
	g.Expect(os.WriteFile(path, file.Bytes(), 0o600)).To(Succeed())
	_, err := world.Kubectl(ctx, "apply", "-f", path)
	g.Expect(err).NotTo(HaveOccurred())
}

// closest returns nothing when some object of the wanted kind in the namespace has all that is wanted, and otherwise what the closest one
// lacks.
func closest(ctx context.Context, world *sandbox.World, namespace string, wanted *unstructured.Unstructured) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(wanted.GroupVersionKind())
	if err := world.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot list %s", wanted.GetKind()), err)
	}
	least := []string{fmt.Sprintf("there is no %s", wanted.GetKind())}
	for i := range list.Items {
		found := differences(fmt.Sprintf("%s %s: ", wanted.GetKind(), list.Items[i].GetName()), wanted.Object, list.Items[i].Object)
		if len(found) == 0 {
			return nil, nil
		}
		if i == 0 || len(found) < len(least) {
			least = found
		}
	}
	return least, nil
}
