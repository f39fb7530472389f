// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

const fieldOwner = "localcontrolplane"

// render returns the objects of a kustomize folder, with clusterctl's ${VARIABLE:=default} expressions replaced as
// clusterctl does it: by the given variables, else by their defaults.
func (cp *ControlPlane) render(ctx context.Context, folder string, variables map[string]string) ([]unstructured.Unstructured, error) {
	out, err := cp.tools.kustomize(ctx, folder)
	if err != nil {
		return nil, err
	}
	data, err := yamlprocessor.NewSimpleProcessor().Process(out, func(name string) (string, error) {
		value, ok := variables[name]
		if !ok {
			return "", fmt.Errorf("variable %s has no value: set it in ManagerSpec.Variables", name)
		}
		return value, nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot replace the variables of %s: %w", folder, err)
	}
	objects, err := utilyaml.ToUnstructured(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read what kustomize made of %s: %w", folder, err)
	}
	return objects, nil
}

// kustomize returns a kustomize folder as one file; a relative path is below the repository's root.
func (t *Tools) kustomize(ctx context.Context, folder string) ([]byte, error) {
	kustomize, err := t.Path(ctx, "kustomize")
	if err != nil {
		return nil, err
	}
	out, err := command(ctx, t.root, kustomize, "build", folder)
	return []byte(out), err
}

// readFolder returns the objects of all *.yaml files of a folder, in the order of the file names.
func readFolder(folder string) ([]unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.yaml file in %s", folder)
	}
	var all []unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read objects: %w", err)
		}
		objects, err := utilyaml.ToUnstructured(data)
		if err != nil {
			return nil, fmt.Errorf("cannot read the objects in %s: %w", file, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// ofKind returns the objects of the given kinds.
func ofKind(objects []unstructured.Unstructured, kinds ...string) []unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o unstructured.Unstructured) bool {
		return !slices.Contains(kinds, o.GetKind())
	})
}

// toCRDs returns the CustomResourceDefinitions among objects.
func toCRDs(objects []unstructured.Unstructured) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	found := ofKind(objects, "CustomResourceDefinition")
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(found))
	for _, object := range found {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := fromUnstructured(object, crd); err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

func fromUnstructured(object unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("cannot read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// apply creates or updates objects by server-side apply, as `kubectl apply` of a release would.
func apply(ctx context.Context, config *rest.Config, objects []unstructured.Unstructured) error {
	cl, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot connect to the management cluster: %w", err)
	}
	for i := range objects {
		object := &objects[i]
		configuration := client.ApplyConfigurationFromUnstructured(object)
		if err := cl.Apply(ctx, configuration, client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
			return fmt.Errorf("cannot apply %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}
