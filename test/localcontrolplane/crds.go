// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

const (
	crdTimeout      = 4 * time.Minute
	crdPollInterval = 100 * time.Millisecond
)

// CRDGroup names the CustomResourceDefinitions of one project.
type CRDGroup string

// The groups that InstallCRDs knows.
const (
	// CRDsCore are Cluster API core's, from its module, with its conversion webhooks: v1beta1 objects can be read and
	// written once StartCore has returned.
	CRDsCore CRDGroup = "core"
	// CRDsProviders are this project's, as rendered by kustomize from config/.
	CRDsProviders CRDGroup = "providers"
	// CRDsMetal3 are cluster-api-provider-metal3's v1beta1 types, labelled for Cluster API's v1beta1 contract.
	CRDsMetal3 CRDGroup = "metal3"
	// CRDsMetal3V1Beta2 are those that the same project's releases have since they also serve v1beta2: its storage version, which is labelled
	// for Cluster API's v1beta2 contract. They take the place of CRDsMetal3. Their conversion webhook is that of component Simulators.
	CRDsMetal3V1Beta2 CRDGroup = "metal3-v1beta2"
	// CRDsBareMetalHost are baremetal-operator's: BareMetalHost and HardwareData.
	CRDsBareMetalHost CRDGroup = "baremetalhost"
	// CRDsHive are hive's: ClusterDeployment and ClusterImageSet.
	CRDsHive CRDGroup = "hive"
	// CRDsAssisted are assisted-service's: InfraEnv, Agent, NMStateConfig, AgentClusterInstall and others.
	CRDsAssisted CRDGroup = "assisted"
	// CRDsCertManager are Certificate and Issuer without a schema. Nothing serves them; they make clusterctl believe that
	// cert-manager is installed and let release manifests be applied as they are.
	CRDsCertManager CRDGroup = "cert-manager"
)

// Simulators is the name of the component behind the webhooks of Metal3's CRDs and of all else that is simulated; see WebhookServer.
const Simulators = "simulators"

// metal3V1Beta2Folder has the CRDs of CRDsMetal3V1Beta2: no release of their Go types can be downloaded.
const metal3V1Beta2Folder = "test/localcontrolplane/crds/metal3"

// AllCRDs returns every group but CRDsMetal3V1Beta2.
func AllCRDs() []CRDGroup {
	return []CRDGroup{CRDsCore, CRDsProviders, CRDsMetal3, CRDsBareMetalHost, CRDsHive, CRDsAssisted, CRDsCertManager}
}

// apiPackage is a Go package that controller-gen makes CRDs from.
type apiPackage struct {
	moduleDir string // folder in the repository with the go.mod that pins it
	path      string
	generator string // controller-gen's generator with its options
}

const plainGenerator = "crd:crdVersions=v1"

// generatedCRDs are the groups made from Go types. The root module pins the packages that compile beside this project,
// hack/tools/crds those that do not.
var generatedCRDs = map[CRDGroup][]apiPackage{
	CRDsMetal3: {{"hack/tools/crds", "github.com/metal3-io/cluster-api-provider-metal3/api/v1beta1", plainGenerator}},
	CRDsBareMetalHost: {
		// HardwareData has a float, which controller-gen refuses by default.
		{".", "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1", plainGenerator + ",allowDangerousTypes=true"},
	},
	CRDsHive: {{".", "github.com/openshift/hive/apis/hive/v1", plainGenerator}},
	CRDsAssisted: {
		{"hack/tools/crds", "github.com/openshift/assisted-service/api/v1beta1", plainGenerator},
		{".", "github.com/openshift/assisted-service/api/hiveextension/v1beta1", plainGenerator},
	},
}

// wantedCRDs are, of projects that have many more, those of the kinds that somebody here reads or writes: an API server makes its schema
// anew for every CRD that is installed, which is most of what the start of a control plane takes.
var wantedCRDs = map[CRDGroup][]string{
	CRDsBareMetalHost: {"baremetalhosts.metal3.io", "hardwaredata.metal3.io"},
	CRDsHive:          {"clusterdeployments.hive.openshift.io", "clusterimagesets.hive.openshift.io"},
}

// crdLabels are what kustomize adds in a project's release: without the contract label Cluster API cannot follow a
// reference to the kind, without clusterctl's label `clusterctl move` does not see it.
var crdLabels = map[CRDGroup]map[string]string{
	CRDsMetal3V1Beta2: {
		"cluster.x-k8s.io/provider":  "infrastructure-metal3",
		clusterctlv1.ClusterctlLabel: "",
	},
	CRDsMetal3: {
		"cluster.x-k8s.io/v1beta1":   "v1beta1",
		"cluster.x-k8s.io/provider":  "infrastructure-metal3",
		clusterctlv1.ClusterctlLabel: "",
	},
	// Not from kustomize: whoever moves hosts labels the kind so, with all that hosts own (docs/guides/move.md).
	CRDsBareMetalHost: {clusterctlv1.ClusterctlLabel: "", clusterctlv1.ClusterctlMoveHierarchyLabel: ""},
	CRDsCore:          {clusterctlv1.ClusterctlLabel: ""},
	CRDsProviders:     {clusterctlv1.ClusterctlLabel: ""},
}

// InstallCRDs creates or updates the CRDs of the given groups and returns when the apiserver serves them. A group can be
// installed at any time, also after the managers are running.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, groups ...CRDGroup) error {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, group := range groups {
		crds, err := cp.crds(ctx, group)
		if err != nil {
			return fmt.Errorf("cannot make the CRDs of %s: %w", group, err)
		}
		for _, crd := range crds {
			crd.Labels = merge(crd.Labels, crdLabels[group])
		}
		all = append(all, crds...)
	}
	return InstallCRDs(ctx, cp.Admin(), all)
}

// InstallCRDFolders does the same for all CRDs in the *.yaml files of the given folders, unchanged.
func (cp *ControlPlane) InstallCRDFolders(ctx context.Context, folders ...string) error {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range folders {
		crds, err := readCRDFolder(folder)
		if err != nil {
			return err
		}
		all = append(all, crds...)
	}
	return InstallCRDs(ctx, cp.Admin(), all)
}

// InstallCRDs creates or updates crds in any cluster and returns when its apiserver serves them, after at most a minute.
func InstallCRDs(ctx context.Context, config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := envtest.CreateCRDs(config, crds); err != nil {
		return fmt.Errorf("cannot install CRDs: %w", err)
	}
	limits := envtest.CRDInstallOptions{MaxTime: crdTimeout, PollInterval: crdPollInterval}
	if err := envtest.WaitForCRDs(config, crds, limits); err != nil {
		return fmt.Errorf("the apiserver does not serve the installed CRDs: %w", err)
	}
	return nil
}

func (cp *ControlPlane) crds(ctx context.Context, group CRDGroup) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	switch group {
	case CRDsCore:
		core, err := cp.coreManager(ctx)
		if err != nil {
			return nil, err
		}
		return cp.shippedCRDs(ctx, core)
	case CRDsProviders:
		return cp.shippedCRDs(ctx, BootstrapManager(), ControlPlaneManager())
	case CRDsCertManager:
		return certManagerCRDs(), nil
	case CRDsMetal3V1Beta2:
		return cp.metal3V1Beta2CRDs()
	}
	return cp.tools.generatedCRDs(ctx, group)
}

func (cp *ControlPlane) metal3V1Beta2CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := readCRDFolder(filepath.Join(cp.tools.root, metal3V1Beta2Folder))
	if err != nil {
		return nil, err
	}
	endpoint, err := cp.webhookEndpoint(Simulators)
	if err != nil {
		return nil, err
	}
	endpoint.rewireCRDs(crds, everyService)
	return crds, nil
}

// generatedCRDs returns the CRDs of a group that is made from Go types.
func (t *Tools) generatedCRDs(ctx context.Context, group CRDGroup) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	packages, ok := generatedCRDs[group]
	if !ok {
		return nil, fmt.Errorf("unknown CRD group %q: known are %v", group, AllCRDs())
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, pkg := range packages {
		crds, err := t.generateCRDs(ctx, pkg)
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	if wanted := wantedCRDs[group]; wanted != nil {
		all = slices.DeleteFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return !slices.Contains(wanted, crd.Name) })
	}
	if err := addNewFields(all); err != nil {
		return nil, err
	}
	return all, addNewValues(all)
}

// shippedCRDs returns the CRDs in the managers' kustomize folders, with conversion by the managers' webhooks.
func (cp *ControlPlane) shippedCRDs(ctx context.Context, managers ...ManagerSpec) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, manager := range managers {
		objects, err := cp.render(ctx, manager.Kustomize, manager.Variables)
		if err != nil {
			return nil, err
		}
		crds, err := toCRDs(objects)
		if err != nil {
			return nil, err
		}
		endpoint, err := cp.webhookEndpoint(manager.Name)
		if err != nil {
			return nil, err
		}
		endpoint.rewireCRDs(crds, everyService)
		all = append(all, crds...)
	}
	return all, nil
}

// generateCRDs returns what controller-gen makes of a package. The result is cached for each version of the package.
func (t *Tools) generateCRDs(ctx context.Context, pkg apiPackage) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	generator, err := t.Path(ctx, "controller-gen")
	if err != nil {
		return nil, err
	}
	moduleDir := filepath.Join(t.root, pkg.moduleDir)
	hash, err := moduleHash(moduleDir, filepath.Base(generator), pkg.path, pkg.generator)
	if err != nil {
		return nil, err
	}
	cached := filepath.Join(t.cache, "crds", hash)
	if err := os.MkdirAll(filepath.Dir(cached), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the cache folder for generated CRDs: %w", err)
	}
	err = t.once(ctx, cached, func(draft string) error {
		_, err := command(ctx, moduleDir, generator, pkg.generator, "paths="+pkg.path, "output:crd:dir="+draft)
		return err
	})
	if err != nil {
		return nil, err
	}
	return readCRDFolder(cached)
}

func readCRDFolder(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	objects, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	return toCRDs(objects)
}

func certManagerCRDs() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		schemalessCRD("cert-manager.io", "Certificate", "certificate", "certificates"),
		schemalessCRD("cert-manager.io", "Issuer", "issuer", "issuers"),
	}
}

func schemalessCRD(group, kind, singular, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Singular: singular, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

func merge(labels, more map[string]string) map[string]string {
	merged := maps.Clone(labels)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, more)
	return merged
}
