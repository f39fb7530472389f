// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// ownCRDs are the CRDs of this project's kinds. Another project ships CRDs of the same names at other versions (DESIGN D1).
var ownCRDs = []string{
	"openshiftassistedconfigs." + bootstrapv1.GroupVersion.Group,
	"openshiftassistedconfigtemplates." + bootstrapv1.GroupVersion.Group,
	"openshiftassistedcontrolplanes." + controlplanev1.GroupVersion.Group,
	"openshiftassistedcontrolplanetemplates." + controlplanev1.GroupVersion.Group,
}

// ownVersion is the only version of this project's kinds.
var ownVersion = bootstrapv1.GroupVersion.Version

// checkCRDs fails when a CRD of this project's kinds is not this project's: two providers would both act on every object of the kind. It
// runs before anything is watched or written. A CRD that does not exist is none of another project.
func checkCRDs(ctx context.Context, reader client.Reader) error {
	var foreign []string
	for _, name := range ownCRDs {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := reader.Get(ctx, client.ObjectKey{Name: name}, crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
		}
		if versions := foreignVersions(crd); len(versions) > 0 {
			foreign = append(foreign, fmt.Sprintf("%s (%s)", name, strings.Join(versions, ", ")))
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf(
			"CustomResourceDefinitions have versions that this release does not know: %s: they belong to another provider of the same kinds, "+
				"or to a newer release; nothing was changed; use another management cluster, or remove that provider, its objects and its "+
				"CustomResourceDefinitions first",
			strings.Join(foreign, "; "),
		)
	}
	return nil
}

// foreignVersions are the versions of a CRD, served, stored or neither, that are not this project's, sorted.
func foreignVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	versions := slices.Clone(crd.Status.StoredVersions)
	for i := range crd.Spec.Versions {
		versions = append(versions, crd.Spec.Versions[i].Name)
	}
	versions = slices.DeleteFunc(versions, func(version string) bool { return version == ownVersion })
	slices.Sort(versions)
	return slices.Compact(versions)
}
