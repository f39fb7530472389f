// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/contract"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// Release is what clusterctl and the Cluster API operator read of a provider's release.
type Release struct {
	// Version is a semantic version with a leading v.
	Version string
	// Components and Metadata are the contents of the components file and of metadata.yaml.
	Components, Metadata []byte
}

// CoreRelease returns Cluster API core's release, rendered from its module.
func (t *Tools) CoreRelease(ctx context.Context) (*Release, error) {
	dir, err := t.ModuleDir(ctx, coreModule)
	if err != nil {
		return nil, err
	}
	version, err := goCommand(ctx, t.root, "list", "-m", "-f", "{{.Version}}", coreModule)
	if err != nil {
		return nil, err
	}
	components, err := t.kustomize(ctx, coreKustomize(dir))
	if err != nil {
		return nil, err
	}
	metadata, err := os.ReadFile(filepath.Join(dir, "metadata.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the release series of Cluster API core: %w", err)
	}
	return &Release{Version: version, Components: components, Metadata: metadata}, nil
}

const (
	metal3Module    = "github.com/metal3-io/cluster-api-provider-metal3/api"
	metal3Namespace = "capm3-system"
	metal3Metadata  = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 10, contract: v1beta1}
`
)

// Metal3Release returns a stand-in for the release of cluster-api-provider-metal3: its CRDs and its namespace, and no manager, which
// test/sim/metal3 plays.
func (t *Tools) Metal3Release(ctx context.Context) (*Release, error) {
	version, err := goCommand(ctx, filepath.Join(t.root, toolModules, "crds"), "list", "-m", "-f", "{{.Version}}", metal3Module)
	if err != nil {
		return nil, err
	}
	crds, err := t.generatedCRDs(ctx, CRDsMetal3)
	if err != nil {
		return nil, err
	}
	labels := maps.Clone(crdLabels[CRDsMetal3])
	delete(labels, clusterctlv1.ClusterctlLabel) // Whoever installs it adds that.
	objects := []unstructured.Unstructured{}
	add := func(typed metav1.Object, kind, apiVersion string) error {
		typed.SetLabels(merge(typed.GetLabels(), labels))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return fmt.Errorf("cannot encode %s %s: %w", kind, typed.GetName(), err)
		}
		delete(content, "status")
		content["kind"], content["apiVersion"] = kind, apiVersion
		objects = append(objects, unstructured.Unstructured{Object: content})
		return nil
	}
	if err := add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metal3Namespace}}, "Namespace", "v1"); err != nil {
		return nil, err
	}
	for _, crd := range crds {
		if crd.Name != contract.CalculateCRDName(crd.Spec.Group, crd.Spec.Names.Kind) {
			// As upstream's release does for Metal3Data.
			metav1.SetMetaDataAnnotation(&crd.ObjectMeta, clusterctlv1.SkipCRDNamePreflightCheckAnnotation, "")
		}
		if err := add(crd, crd.Kind, crd.APIVersion); err != nil {
			return nil, err
		}
	}
	components, err := utilyaml.FromUnstructured(objects)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the release of Metal3: %w", err)
	}
	return &Release{Version: version, Components: components, Metadata: []byte(metal3Metadata)}, nil
}
