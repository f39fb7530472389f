// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// The minor versions that assisted-service has OS images of: that of OpenShiftVersion, and that of MinorRelease once a story adds it.
const (
	firstOSImage = "4.20"
	minorOSImage = "4.21"
)

// architectures are those of hosts, in the spelling of the AgentServiceConfig.
var architectures = []string{"x86_64", "arm64", "ppc64le", "s390x"}

// OfferOSImages gives assisted-service the OS images of these minor versions and no others, as its administrator and its operator do.
func (w *World) OfferOSImages(ctx context.Context, versions ...string) error {
	var images []simassisted.OSImage
	var listed []any
	for _, version := range versions {
		for _, architecture := range architectures {
			images = append(images, simassisted.OSImage{Version: version, Architecture: architecture})
			listed = append(listed, map[string]any{
				"openshiftVersion": version, "cpuArchitecture": architecture, "version": version + ".0",
				"url": fmt.Sprintf("https://images.invalid/%s/%s.iso", version, architecture),
			})
		}
	}
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(assisted.GroupVersion.WithKind("AgentServiceConfig"))
	config.SetName(assisted.AgentServiceConfigName)
	_, err := controllerutil.CreateOrUpdate(ctx, w.Client, config, func() error {
		config.Object["spec"] = map[string]any{"databaseStorage": map[string]any{}, "filesystemStorage": map[string]any{}, "osImages": listed}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot write the AgentServiceConfig: %w", err)
	}
	return w.Assisted.SetOSImages(ctx, images...)
}

// askForWorker has assisted-service get the OS image of the release that the cluster runs, and asks for another worker, for which there is
// no host: it is given up when its host would boot that image.
func (r *run) askForWorker(ctx context.Context) error {
	if !r.request.HasWorkers() {
		return nil
	}
	if err := r.world.OfferOSImages(ctx, firstOSImage, minorOSImage); err != nil {
		return err
	}
	if err := r.scaleWorkers(ctx, 1); err != nil {
		return err
	}
	boots := r.world.boots(r.cluster, minorOSImage)
	if err := r.await(ctx, settleTimeout, "a host to get the image of "+minorOSImage, boots); err != nil {
		return err
	}
	if err := r.scaleWorkers(ctx, -1); err != nil {
		return err
	}
	err := r.await(ctx, settleTimeout, "the worker to be given up", func(ctx context.Context) (string, error) {
		machines, err := r.world.Machines(ctx, r.cluster)
		if err != nil || len(machines) == r.request.Machines() {
			return "", err
		}
		return fmt.Sprintf("there are %d Machines", len(machines)), nil
	})
	if err != nil {
		return err
	}
	// The world is compared with what it was before.
	return r.world.OfferOSImages(ctx, firstOSImage)
}

// scaleWorkers changes the number of workers of a cluster without a topology.
func (r *run) scaleWorkers(ctx context.Context, by int32) error {
	deployment, err := r.world.machineDeploymentOf(ctx, r.cluster)
	if err != nil {
		return err
	}
	_, err = r.world.Kubectl(ctx, "scale", "machinedeployment", deployment.Name, "-n", r.cluster.Namespace,
		fmt.Sprintf("--replicas=%d", ptr.Deref(deployment.Spec.Replicas, 1)+by))
	return err
}

// boots checks that the host of exactly one config of a cluster gets the OS image of a minor version, by the InfraEnv that the config
// records, and that the InfraEnvs of the others have no version.
func (w *World) boots(cluster types.NamespacedName, version string) Check {
	return func(ctx context.Context) (string, error) {
		configs := &bootstrapv1.OpenshiftAssistedConfigList{}
		if err := w.Client.List(ctx, configs, ofCluster(cluster)...); err != nil {
			return "", fmt.Errorf("cannot list the configs of Cluster %s: %w", cluster, err)
		}
		var having, missing []string
		for i := range configs.Items {
			config := &configs.Items[i]
			infraEnv := &assisted.InfraEnv{}
			key := types.NamespacedName{Namespace: cluster.Namespace, Name: config.Annotations[bootstrapv1.InfraEnvAnnotation]}
			if key.Name == "" {
				continue
			}
			if err := w.Client.Get(ctx, key, infraEnv); client.IgnoreNotFound(err) != nil {
				return "", fmt.Errorf("cannot read InfraEnv %s: %w", key, err)
			}
			chosen := config.Annotations[bootstrapv1.OSImageVersionAnnotation]
			if infraEnv.Spec.OSImageVersion != chosen {
				missing = append(missing, fmt.Sprintf("InfraEnv %s of %s has the version %q, and %q is recorded", key.Name, config.Name,
					infraEnv.Spec.OSImageVersion, chosen))
			}
			if chosen == version && strings.Contains(infraEnv.Status.ISODownloadURL, "/"+version+"/") {
				having = append(having, config.Name)
			}
		}
		if len(having) != 1 {
			missing = append(missing, fmt.Sprintf("the hosts of %v boot the image of %s, one was wanted", having, version))
		}
		return strings.Join(missing, "\n"), nil
	}
}
