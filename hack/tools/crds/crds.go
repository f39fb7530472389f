// SPDX-License-Identifier: Apache-2.0

// Package crds pins the API modules of Metal3 and assisted-service whose CRDs the local control plane installs. It is
// never compiled: their Go code wants an older Cluster API and controller-runtime than the providers use, and
// controller-gen reads only types and markers, which it can do without compiling.
package crds

import (
	_ "github.com/metal3-io/cluster-api-provider-metal3/api/v1beta1"
	_ "github.com/openshift/assisted-service/api/v1beta1"
)
