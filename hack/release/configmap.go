// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The Cluster API operator's names in a ConfigMap that replaces a download (CONTRACT OP-2).
const (
	configMapVersionLabel = "provider.cluster.x-k8s.io/version"
	configMapTypeLabel    = "provider.cluster.x-k8s.io/type"
	configMapNameLabel    = "provider.cluster.x-k8s.io/name"
	configMapCompressed   = "provider.cluster.x-k8s.io/compressed" // annotation
	configMapMetadata     = "metadata"
	configMapComponents   = "components"

	// maxConfigMapSize is how many bytes of values the API server accepts in one ConfigMap.
	maxConfigMapSize = 1 << 20
)

// configMap returns a provider's release as the Cluster API operator reads it where there is no network (CONTRACT OP-2). It has no
// namespace: the operator looks in the namespace of the BootstrapProvider or ControlPlaneProvider, which the user chooses.
func configMap(p provider, version string, metadata, components []byte) ([]byte, error) {
	object := corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: p.label() + "-" + version,
			Labels: map[string]string{
				configMapVersionLabel: version, configMapTypeLabel: p.name(), configMapNameLabel: providerName,
			},
		},
		Data: map[string]string{configMapMetadata: string(metadata)},
	}
	if len(metadata)+len(components) <= maxConfigMapSize {
		object.Data[configMapComponents] = string(components)
	} else {
		compressed, err := compress(components)
		if err != nil {
			return nil, fmt.Errorf("compress the components of %s: %w", p.name(), err)
		}
		object.BinaryData = map[string][]byte{configMapComponents: compressed}
		object.Annotations = map[string]string{configMapCompressed: "true"}
	}
	data, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode the ConfigMap of %s: %w", p.name(), err)
	}
	return data, nil
}

// compress gzips data, with no time or name in the header: the same data gives the same bytes.
func compress(data []byte) ([]byte, error) {
	out := &bytes.Buffer{}
	writer, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(data); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
