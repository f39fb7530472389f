// SPDX-License-Identifier: Apache-2.0

// Package validation holds the checks that the webhooks of both providers make, because an OpenshiftAssistedConfigSpec is part of kinds of
// both.
package validation

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// localhost is what a host is called that has no name (ASSISTED 4).
const localhost = "localhost"

// Config checks of an OpenshiftAssistedConfigSpec what CEL cannot: certificates and ignition that parse, and a label selector that
// compiles.
func Config(spec bootstrapv1.OpenshiftAssistedConfigSpec, path *field.Path) field.ErrorList {
	errs := trustBundle(spec.AdditionalTrustBundle, path.Child("additionalTrustBundle"))
	errs = append(errs, ignitionConfig(spec.Discovery.Ignition, path.Child("discovery", "ignition"))...)
	errs = append(errs, ignitionConfig(spec.Installation.Ignition, path.Child("installation", "ignition"))...)
	if spec.NMStateConfigSelector == nil {
		return errs
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.NMStateConfigSelector); err != nil {
		errs = append(errs, field.Invalid(path.Child("nmStateConfigSelector"), field.OmitValueType{}, err.Error()))
	}
	return errs
}

// ControlPlaneConfig checks of the OpenshiftAssistedConfigSpec of a control plane also what only workers may have.
func ControlPlaneConfig(spec bootstrapv1.OpenshiftAssistedConfigSpec, path *field.Path) field.ErrorList {
	errs := Config(spec, path)
	if spec.NodeRegistration.MachineConfigPool != "" {
		errs = append(
			errs, field.Forbidden(path.Child("nodeRegistration", "machineConfigPool"), "is for workers: control-plane Nodes are in pool master"),
		)
	}
	return errs
}

// controlPlaneGroup is the group of the control plane provider's annotations. The bootstrap manager knows nothing else of its API.
const controlPlaneGroup = "controlplane.cluster.x-k8s.io"

// TemplateMetadata refuses annotations of the providers' own in a template, from which they come to every object that is made of it: each
// is the record of one object. Another number of the installation would have a Machine replaced for ever, and a cluster deleted.
func TemplateMetadata(metadata clusterv1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := metadata.Validate(path)
	for _, key := range slices.Sorted(maps.Keys(metadata.Annotations)) {
		if group, _, _ := strings.Cut(key, "/"); group == controlPlaneGroup || group == bootstrapv1.GroupVersion.Group {
			errs = append(errs, field.Forbidden(path.Child("annotations").Key(key), "is set by the providers, or for one object alone; remove it"))
		}
	}
	return errs
}

// Hostname checks that a name can be a host's: Machine names become the names of Nodes (DESIGN D7).
func Hostname(name string, path *field.Path) field.ErrorList {
	problems := HostnameProblems(name)
	errs := make(field.ErrorList, 0, len(problems))
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, name, "becomes a hostname: "+problem))
	}
	return errs
}

// HostnameProblems says why a name cannot be a host's; nothing when it can.
func HostnameProblems(name string) []string {
	problems := apivalidation.IsDNS1123Subdomain(name)
	if len(name) > apivalidation.DNS1123LabelMaxLength {
		problems = append(problems, fmt.Sprintf("must be no more than %d characters", apivalidation.DNS1123LabelMaxLength))
	}
	if name == localhost || strings.HasPrefix(name, localhost+".") {
		problems = append(problems, "must not be localhost, which assisted-service refuses")
	}
	return problems
}

// maxTrustBundle is the size of the largest trust bundle, by value or in a ConfigMap.
const maxTrustBundle = 256 << 10

// TrustBundleProblem says what is wrong with a trust bundle that has to be one; nothing when it is right.
func TrustBundleProblem(bundle string) string {
	switch {
	case strings.TrimSpace(bundle) == "":
		return "must hold PEM blocks of type CERTIFICATE"
	case len(bundle) > maxTrustBundle:
		return fmt.Sprintf("must be no more than %d bytes", maxTrustBundle)
	}
	return bundleProblem(bundle)
}

func trustBundle(bundle string, path *field.Path) field.ErrorList {
	if problem := bundleProblem(bundle); problem != "" {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, problem)}
	}
	return nil
}

// bundleProblem checks that every block of a bundle is a certificate that parses, and that nothing else is in it.
func bundleProblem(bundle string) string {
	rest := []byte(bundle)
	for n := 1; len(bytes.TrimSpace(rest)) > 0; n++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return fmt.Sprintf("PEM block %d cannot be decoded: remove what is no certificate", n)
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Sprintf("PEM block %d is a %s, must be a CERTIFICATE", n, block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Sprintf("certificate %d cannot be parsed: %v", n, err)
		}
	}
	return ""
}
