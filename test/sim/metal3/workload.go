// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// workloadTimeout bounds a request to a workload cluster, so that a dead one cannot stall the simulation.
	workloadTimeout = 5 * time.Second
	// nodeFieldManager is CAPM3's name in the workload cluster, as recorded.
	nodeFieldManager = "capm3"
)

// workloads makes clients of workload clusters from their kubeconfig Secrets, and keeps each until the Secret changes.
type workloads struct {
	client client.Client

	mu    sync.Mutex
	known map[client.ObjectKey]knownWorkload
}

type knownWorkload struct {
	resourceVersion string
	nodes           nodeClient
}

// nodeClient reads and patches the Nodes of one workload cluster.
type nodeClient struct{ corev1client.NodeInterface }

func newWorkloads(c client.Client) *workloads {
	return &workloads{client: c, known: map[client.ObjectKey]knownWorkload{}}
}

// nodes returns the Nodes client for a Cluster. A missing kubeconfig Secret is reported in CAPM3's words (M3-31).
func (w *workloads) nodes(ctx context.Context, cluster *clusterv1.Cluster) (nodeClient, error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}
	secret := &corev1.Secret{}
	if err := w.client.Get(ctx, key, secret); err != nil {
		return nodeClient{}, fmt.Errorf("failed to retrieve kubeconfig secret for Cluster %q in namespace %q: %w",
			cluster.Name, cluster.Namespace, inServerWords(err, key.Name))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.known[key]; ok && known.resourceVersion == secret.ResourceVersion {
		return known.nodes, nil
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		return nodeClient{}, fmt.Errorf("read the kubeconfig in Secret %s: %w", key, err)
	}
	config.Timeout = workloadTimeout
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nodeClient{}, fmt.Errorf("create a client from the kubeconfig in Secret %s: %w", key, err)
	}
	w.known[key] = knownWorkload{resourceVersion: secret.ResourceVersion, nodes: nodeClient{clients.CoreV1().Nodes()}}
	return w.known[key].nodes, nil
}

// inServerWords turns the cache's `Secret "x" not found` into the API server's `secrets "x" not found`, which users see.
func inServerWords(err error, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return err
}

func (n nodeClient) setProviderID(ctx context.Context, node, providerID string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"providerID": providerID}})
	if err != nil {
		return fmt.Errorf("build the provider ID patch of Node %s: %w", node, err)
	}
	options := metav1.PatchOptions{FieldManager: nodeFieldManager}
	if _, err := n.Patch(ctx, node, types.MergePatchType, patch, options); err != nil {
		return fmt.Errorf("set the provider ID of Node %s: %w", node, err)
	}
	return nil
}
