// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// scheme knows what an installed cluster holds.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(configv1.Install(s))
	utilruntime.Must(operatorv1.Install(s))
	utilruntime.Must(machineconfigv1.Install(s))
	return s
}

// asExpected is the reason of a condition that says nothing in particular.
const asExpected = "AsExpected"

// operators are the ClusterOperators that every cluster has, as far as somebody might look for them, in the order in which they become
// available: those of the control plane long before the installation is complete.
var operators = []string{
	"network", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "machine-config", "ingress", "authentication", "console",
}

// seed fills a new API: the CRDs, the ClusterVersion of a running installation, and operators that are not there yet.
func (c *cluster) seed(ctx context.Context, spec assisted.ClusterSpec) error {
	if err := localcontrolplane.InstallCRDs(ctx, c.apiServer().Config(), CRDs()); err != nil {
		return fmt.Errorf("cannot install the CRDs of cluster %s: %w", spec.Key, err)
	}
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Spec.ClusterID = configv1.ClusterID(spec.ClusterID)
	version.Spec.Channel = upgrade.Channel(c.manager.installed(spec).Version)
	if err := c.client.Create(ctx, version); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create the ClusterVersion of cluster %s: %w", spec.Key, err)
	}
	if err := c.tellAuthorities(ctx, c.apiServer().CA()); err != nil {
		return err
	}
	for _, name := range operators {
		operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.client.Create(ctx, operator); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot create ClusterOperator %s of cluster %s: %w", name, spec.Key, err)
		}
	}
	for _, name := range []string{upgrade.Master, upgrade.Worker} {
		pool := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.client.Create(ctx, pool); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot create MachineConfigPool %s of cluster %s: %w", name, spec.Key, err)
		}
	}
	return c.report(ctx, spec, false)
}

// CRDs are those of OpenShift that an installed cluster has.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		clusterVersionCRD(),
		openCRD(configv1.GroupName, "ClusterOperator", "clusteroperator", "clusteroperators"),
		openCRD(operatorv1.GroupName, "Etcd", "etcd", "etcds"),
		openCRD(machineconfigv1.GroupName, "MachineConfigPool", "machineconfigpool", "machineconfigpools"),
	}
}

// complete reports the end of the installation.
func (c *cluster) complete(ctx context.Context) error { return c.report(ctx, c.wanted(), true) }

// report writes what the cluster says about its own installation.
func (c *cluster) report(ctx context.Context, spec assisted.ClusterSpec, done bool) error {
	version := &configv1.ClusterVersion{}
	if err := c.client.Get(ctx, types.NamespacedName{Name: "version"}, version); err != nil {
		return fmt.Errorf("cannot read the ClusterVersion of cluster %s: %w", spec.Key, err)
	}
	now := metav1.Now()
	installed := c.manager.installed(spec)
	release := configv1.Release{Version: installed.Version, Image: installed.Image}
	update := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: now, Version: release.Version, Image: release.Image}
	if len(version.Status.History) > 0 {
		update.StartedTime = version.Status.History[0].StartedTime
	}
	if done {
		update.State, update.CompletionTime = configv1.CompletedUpdate, &now
	}
	before := version.DeepCopy()
	version.Status.Desired = release
	version.Status.History = []configv1.UpdateHistory{update}
	version.Status.Conditions = versionConditions(release.Version, done)
	if err := c.client.Status().Patch(ctx, version, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the ClusterVersion of cluster %s: %w", spec.Key, err)
	}
	for _, name := range operators {
		if err := c.reportOperator(ctx, spec, name, done); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) reportOperator(ctx context.Context, spec assisted.ClusterSpec, name string, available bool) error {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	base := operator.DeepCopy()
	operator.Status.Conditions = operatorConditions(available)
	operator.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: c.manager.installed(spec).Version}}
	if err := c.client.Status().Patch(ctx, operator, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("cannot write ClusterOperator %s of cluster %s: %w", name, spec.Key, err)
	}
	return nil
}

// syncOperators lets the next ClusterOperators become available when their time has come.
func (c *cluster) syncOperators(ctx context.Context, spec assisted.ClusterSpec) error {
	now := time.Now()
	if c.runsFrom.IsZero() {
		for _, node := range c.observed().Nodes {
			if node.Joined {
				c.runsFrom = now
			}
		}
	}
	for ; c.available < len(operators); c.available++ {
		due := c.runsFrom.Add(time.Duration(c.available+1) * c.manager.opts.OperatorDelay)
		if c.runsFrom.IsZero() || now.Before(due) {
			return nil
		}
		if err := c.reportOperator(ctx, spec, operators[c.available], true); err != nil {
			return err
		}
	}
	return nil
}

func operatorConditions(done bool) []configv1.ClusterOperatorStatusCondition {
	available, progressing := configv1.ConditionFalse, configv1.ConditionTrue
	if done {
		available, progressing = configv1.ConditionTrue, configv1.ConditionFalse
	}
	now := metav1.Now()
	return []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: available, Reason: asExpected, LastTransitionTime: now},
		{Type: configv1.OperatorProgressing, Status: progressing, Reason: asExpected, LastTransitionTime: now},
		{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, Reason: asExpected, LastTransitionTime: now},
		{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionTrue, Reason: asExpected, LastTransitionTime: now},
	}
}

// versionConditions are what the ClusterVersion says of the installation.
func versionConditions(version string, done bool) []configv1.ClusterOperatorStatusCondition {
	now := metav1.Now()
	out := []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse, LastTransitionTime: now},
		{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue, Message: "Working towards " + version, LastTransitionTime: now},
		{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: now},
	}
	if done {
		out[0].Status, out[0].Message = configv1.ConditionTrue, "Done applying "+version
		out[1].Status, out[1].Message = configv1.ConditionFalse, "Cluster version is "+version
	}
	return out
}

// clusterVersionCRD takes any content but updates that the real one refuses (openshift/api, config/v1, types_cluster_version.go).
func clusterVersionCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := openCRD(configv1.GroupName, "ClusterVersion", "clusterversion", "clusterversions")
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true), Properties: properties}
	}
	update := object(map[string]apiextensionsv1.JSONSchemaProps{
		"version": text, "image": text, "architecture": text, "force": {Type: "boolean"},
	})
	update.XValidations = apiextensionsv1.ValidationRules{
		{
			Rule:    "!has(self.architecture) || !has(self.image) || self.architecture == '' || self.image == ''",
			Message: "cannot set both Architecture and Image",
		},
		{
			Rule:    "!has(self.architecture) || self.architecture == '' || has(self.version) && self.version != ''",
			Message: "Version must be set if Architecture is set",
		},
	}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{"desiredUpdate": update, "channel": text}),
	}
	return crd
}

// openCRD is a cluster-scoped resource that takes any content.
func openCRD(group, kind, singular, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Singular: singular, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}
