// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
)

const (
	repositoryFolder = "repository"
	configFile       = "clusterctl.yaml"
)

// repository returns the release as a local repository of clusterctl, with a configuration that points to it. The folders of several
// releases can be merged: the layout has a folder for each version (CONTRACT CTL-1, CTL-2).
func (r release) repository(assets map[string][]byte) map[string][]byte {
	files := map[string][]byte{}
	config := []byte(`# Both providers for clusterctl, without a network:
#
#   export CLUSTERCTL_REPOSITORY_PATH=/absolute/path/of/this/folder
#   clusterctl init --config $CLUSTERCTL_REPOSITORY_PATH/clusterctl.yaml \
#     --bootstrap ` + providerName + ` --control-plane ` + providerName + ` --infrastructure metal3
#
# Cluster API core and Metal3 still come from where clusterctl finds them by default, unless providers are added here.
providers:
`)
	for _, p := range providers {
		folder := path.Join(p.label(), r.version)
		for _, name := range []string{p.componentsFile(), metadataFile} {
			files[path.Join(repositoryFolder, folder, name)] = assets[name]
		}
		config = fmt.Appendf(config, "- name: %s\n  type: %s\n  url: file://${CLUSTERCTL_REPOSITORY_PATH}/%s/%s\n",
			providerName, p.kind, folder, p.componentsFile())
	}
	files[path.Join(repositoryFolder, configFile)] = config
	return files
}
