// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const kernelArgument = "console=ttyS0"

// TestContractClusterClass installs a cluster from the shipped ClusterClass, changes it and deletes it.
func TestContractClusterClass(t *testing.T) {
	t.Parallel()
	s, request := installHA(t, "class", "127.30.5.10")

	t.Run("CP-18 E2E-21 variables become the spec of the control plane that the topology makes", func(t *testing.T) {
		spec := s.controlPlane(t).Spec
		g := NewWithT(t)
		g.Expect(spec.Install.BaseDomain).To(Equal("sandbox.example.com"))
		g.Expect(spec.Install.APIVIPs).To(Equal([]string{request.Address}))
		g.Expect(spec.Install.PullSecretRef.Name).To(Equal(sandbox.PullSecretName))
		g.Expect(spec.MachineTemplate.Spec.InfrastructureRef.Name).NotTo(BeEmpty())
		g.Expect(spec.Replicas).To(HaveValue(BeEquivalentTo(request.ControlPlaneReplicas())))
		_, err := world.VerifyHosts(t.Context(), s.key)
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("CP-73 the topology sets the version of Kubernetes, a variable the release", func(t *testing.T) {
		spec := s.controlPlane(t).Spec
		NewWithT(t).Expect(spec.Version).To(Equal(kubeletVersion))
		NewWithT(t).Expect(spec.DistributionVersion).To(Equal(sandbox.OpenShiftVersion))
	})
	t.Run("CP-71 workers are created while the control plane is installed", func(t *testing.T) {
		initialized := conditions.Get(s.controlPlane(t), controlplanev1.InitializedCondition)
		_, workers := s.machines(t)
		g := NewWithT(t)
		g.Expect(workers).To(HaveLen(request.Workers))
		g.Expect(workers[0].CreationTimestamp.Time).To(BeTemporally("<", initialized.LastTransitionTime.Time))
	})
	t.Run("CP-74 no preflight check is skipped for that", func(t *testing.T) { checkPreflights(t, s) })
	t.Run("CP-70 CP-75 the Cluster shows the version that the Nodes run, and no upgrade", func(t *testing.T) { checkVersionsShown(t, s) })
	t.Run("CP-72 every Machine is up to date whose version is what its kubelet reports", func(t *testing.T) {
		controlPlane, workers := s.machines(t)
		for _, machine := range append(controlPlane, workers...) {
			g := NewWithT(t)
			g.Expect(machine.Spec.Version).To(Equal(kubeletVersion))
			g.Expect(machine.Status.NodeInfo.KubeletVersion).To(Equal(kubeletVersion))
			g.Expect(conditions.IsTrue(machine, clusterv1.MachineUpToDateCondition)).To(BeTrue(), machine.Name)
		}
	})
	t.Run("CORE-10 the Cluster is the controller of the control plane that its topology makes", func(t *testing.T) {
		NewWithT(t).Expect(metav1.IsControlledBy(s.controlPlane(t), s.cluster(t))).To(BeTrue())
	})
	t.Run("CP-18 E2E-21 nobody rewrites what the topology has made", func(t *testing.T) { checkUntouched(t, s) })
	t.Run("BOOT-40 templates may change, so that a topology can try every change", func(t *testing.T) { checkDryRuns(t, s) })
	t.Run("E2E-21 what an installation cannot change is refused", func(t *testing.T) { checkImmutable(t, s) })
	t.Run("a Cluster chooses the rollout strategy of a group of workers", func(t *testing.T) { checkStrategy(t, s) })
	t.Run(
		"BOOT-11 BOOT-40 E2E-21 a changed template and a changed variable outdate the workers, which are replaced when they are deleted",
		func(t *testing.T) { checkRotation(t, s, request) },
	)
	t.Run("E2E-21 the class and its templates are left when the Cluster is deleted", func(t *testing.T) { checkDeletion(t, s) })
}

func checkPreflights(t *testing.T, s story) {
	sets, templates := &clusterv1.MachineSetList{}, &bootstrapv1.OpenshiftAssistedConfigTemplateList{}
	s.list(t, sets)
	s.list(t, templates)
	g := NewWithT(t)
	g.Expect(sets.Items).To(HaveLen(1))
	g.Expect(templates.Items).To(HaveLen(1))
	g.Expect(sets.Items[0].Annotations).NotTo(HaveKey(clusterv1.MachineSetSkipPreflightChecksAnnotation))
	g.Expect(templates.Items[0].Annotations).NotTo(HaveKey(clusterv1.MachineSetSkipPreflightChecksAnnotation))
}

func checkVersionsShown(t *testing.T, s story) {
	controlPlane, cluster := s.controlPlane(t), s.cluster(t)
	g := NewWithT(t)
	g.Expect(controlPlane.Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: kubeletVersion, Replicas: 3}}))
	g.Expect(cluster.Status.ControlPlane.Versions).To(Equal(controlPlane.Status.Versions))
	g.Expect(conditions.IsTrue(cluster, clusterv1.ClusterTopologyReconciledCondition)).To(BeTrue())
}

// checkUntouched checks that nobody but the topology controller has written the specs that it owns: it would set them back for ever.
func checkUntouched(t *testing.T, s story) {
	g := NewWithT(t)
	g.Expect(s.controlPlane(t).Generation).To(BeEquivalentTo(1))
	templates := &bootstrapv1.OpenshiftAssistedConfigTemplateList{}
	s.list(t, templates)
	g.Expect(templates.Items).To(HaveEach(HaveField("ObjectMeta.Generation", BeEquivalentTo(1))))
}

// checkDryRuns asks for what the topology controller asks: a server-side apply of a changed template, of which nothing is stored.
func checkDryRuns(t *testing.T, s story) {
	for _, change := range []struct {
		apiVersion, kind, name, value string
		path                          []string
	}{
		{
			apiVersion: bootstrapv1.GroupVersion.String(), kind: "OpenshiftAssistedConfigTemplate", name: sandbox.ClusterClassName + "-worker",
			path: []string{"spec", "template", "spec", "nodeRegistration", "name"}, value: string(bootstrapv1.NodeNameBareMetalHost),
		},
		{
			apiVersion: controlplanev1.GroupVersion.String(), kind: "OpenshiftAssistedControlPlaneTemplate", name: sandbox.ClusterClassName,
			path: []string{"spec", "template", "spec", "install", "baseDomain"}, value: "changed.example.com",
		},
	} {
		template := &unstructured.Unstructured{Object: map[string]any{}}
		template.SetAPIVersion(change.apiVersion)
		template.SetKind(change.kind)
		template.SetNamespace(s.key.Namespace)
		template.SetName(change.name)
		template.SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
		g := NewWithT(t)
		g.Expect(unstructured.SetNestedField(template.Object, change.value, change.path...)).To(Succeed())
		g.Expect(world.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(template),
			client.FieldOwner("capi-topology"), client.ForceOwnership, client.DryRunAll)).To(Succeed(), change.kind)
	}
}

// checkImmutable changes a variable, which Cluster API refuses, and adds one, which the control plane refuses
// (docs/guides/clusterclass.md).
func checkImmutable(t *testing.T, s story) {
	g := NewWithT(t)
	err := world.SetVariable(t.Context(), s.key, "baseDomain", "example.org")
	g.Expect(err).To(MatchError(And(ContainSubstring("baseDomain"), ContainSubstring("an installed cluster keeps its base domain"))))

	variables := s.cluster(t).Spec.Topology.Variables
	g.Expect(world.SetVariable(t.Context(), s.key, "openshiftClusterName", "another")).To(Succeed())
	s.await(t, settleTimeout, "the refusal", s.topologyReconciled(metav1.ConditionFalse, "spec.install.clusterName: Forbidden: is immutable"))
	g.Expect(world.ChangeTopology(t.Context(), s.key, func(topology *clusterv1.Topology) error {
		topology.Variables = variables
		return nil
	})).To(Succeed())
	s.await(t, settleTimeout, "the topology", s.topologyReconciled(metav1.ConditionTrue, ""))
}

// topologyReconciled checks what the Cluster says of its topology.
func (s story) topologyReconciled(status metav1.ConditionStatus, message string) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		cluster := &clusterv1.Cluster{}
		if err := world.Watch.Get(ctx, s.key, cluster); err != nil {
			return "", err
		}
		condition := conditions.Get(cluster, clusterv1.ClusterTopologyReconciledCondition)
		if condition == nil || condition.Status != status || !strings.Contains(condition.Message, message) {
			return fmt.Sprintf("TopologyReconciled is %+v", condition), nil
		}
		return "", nil
	}
}

// checkStrategy asks for RollingUpdate as docs/guides/workers.md has it, and goes back to what the class says.
func checkStrategy(t *testing.T, s story) {
	none := intstr.FromInt32(0)
	one := intstr.FromInt32(1)
	rolling := clusterv1.MachineDeploymentTopologyRolloutSpec{Strategy: clusterv1.MachineDeploymentTopologyRolloutStrategy{
		Type:          clusterv1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: clusterv1.MachineDeploymentTopologyRolloutStrategyRollingUpdate{MaxSurge: &none, MaxUnavailable: &one},
	}}
	for _, step := range []struct {
		rollout clusterv1.MachineDeploymentTopologyRolloutSpec
		want    clusterv1.MachineDeploymentRolloutStrategyType
	}{
		{rolling, clusterv1.RollingUpdateMachineDeploymentStrategyType},
		{clusterv1.MachineDeploymentTopologyRolloutSpec{}, clusterv1.OnDeleteMachineDeploymentStrategyType},
	} {
		NewWithT(t).Expect(world.ChangeTopology(t.Context(), s.key, func(topology *clusterv1.Topology) error {
			topology.Workers.MachineDeployments[0].Rollout = step.rollout
			return nil
		})).To(Succeed())
		s.await(t, settleTimeout, "the strategy", func(ctx context.Context) (string, error) {
			deployments := &clusterv1.MachineDeploymentList{}
			err := world.Client.List(ctx, deployments, client.InNamespace(s.key.Namespace))
			if err != nil || deployments.Items[0].Spec.Rollout.Strategy.Type == step.want {
				return "", err
			}
			return fmt.Sprintf("it is %+v", deployments.Items[0].Spec.Rollout.Strategy), nil
		})
	}
}

// checkRotation changes the metadata of the class's worker template and a variable that every config has, in this order, and deletes the
// workers once both have reached their MachineDeployment. The control plane stays (docs/guides/clusterclass.md).
func checkRotation(t *testing.T, s story, request sandbox.ClusterRequest) {
	g := NewWithT(t)
	before, err := world.MachineUIDs(t.Context(), s.key)
	g.Expect(err).NotTo(HaveOccurred())
	templates := &bootstrapv1.OpenshiftAssistedConfigTemplateList{}
	s.list(t, templates)
	g.Expect(templates.Items).To(HaveLen(1))

	class := &bootstrapv1.OpenshiftAssistedConfigTemplate{}
	s.get(t, sandbox.ClusterClassName+"-worker", class)
	patch := client.MergeFrom(class.DeepCopy())
	class.Spec.Template.ObjectMeta = clusterv1.ObjectMeta{
		Labels: map[string]string{"example.com/rack": "a"}, Annotations: map[string]string{"example.com/note": "from the template"},
	}
	g.Expect(world.Client.Patch(t.Context(), class, patch)).To(Succeed())
	g.Expect(world.SetVariable(t.Context(), s.key, "installation", map[string]any{"kernelArguments": []string{kernelArgument}})).To(Succeed())
	s.await(t, settleTimeout, "the workers to be outdated", sandbox.All(s.workersWanted(kernelArgument), world.WorkersOutdated(s.key, before)))
	g.Expect(world.DeleteWorkers(t.Context(), s.key)).To(Succeed())
	s.await(t, installTimeout, "the workers to be replaced", sandbox.All(
		world.WorkersReplaced(s.key, before),
		world.ControlPlaneKept(s.key, before, sandbox.ConfigOutdated),
		world.Running(s.key, request.Machines()),
	))

	_, workers := s.machines(t)
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	s.get(t, workers[0].Spec.Bootstrap.ConfigRef.Name, config)
	g.Expect(config.Labels).To(HaveKeyWithValue("example.com/rack", "a"))
	g.Expect(config.Annotations).To(HaveKeyWithValue("example.com/note", "from the template"))
	g.Expect(config.Spec.Installation.KernelArguments).To(Equal([]string{kernelArgument}))
	g.Expect(config.Annotations[clusterv1.TemplateClonedFromNameAnnotation]).NotTo(Equal(templates.Items[0].Name), "the template was rotated")
	g.Expect(conditions.IsTrue(s.controlPlane(t), controlplanev1.RollingOutCondition)).
		To(BeTrue(), "the control plane says that it is outdated")
}

// workersWanted checks that configs of new workers have a kernel argument.
func (s story) workersWanted(argument string) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		deployments := &clusterv1.MachineDeploymentList{}
		if err := world.Client.List(ctx, deployments, client.InNamespace(s.key.Namespace)); err != nil {
			return "", err
		}
		template := &bootstrapv1.OpenshiftAssistedConfigTemplate{}
		key := client.ObjectKey{Namespace: s.key.Namespace, Name: deployments.Items[0].Spec.Template.Spec.Bootstrap.ConfigRef.Name}
		if err := world.Client.Get(ctx, key, template); err != nil {
			return "", err
		}
		if !slices.Contains(template.Spec.Template.Spec.Installation.KernelArguments, argument) {
			return "the template of the workers' configs is " + template.Name, nil
		}
		return "", nil
	}
}

func checkDeletion(t *testing.T, s story) {
	s.delete(t)
	g := NewWithT(t)
	for kind, names := range map[schema.GroupVersionKind][]string{
		bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfigTemplateList"):          {sandbox.ClusterClassName + "-worker"},
		controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlaneTemplateList"): {sandbox.ClusterClassName},
		controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlaneList"):         nil,
		bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfigList"):                  nil,
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		// The garbage collector may still be at it.
		g.Eventually(func() ([]string, error) {
			var left []string
			err := world.Client.List(t.Context(), list, client.InNamespace(s.key.Namespace))
			for i := range list.Items {
				left = append(left, list.Items[i].GetName())
			}
			return left, err
		}).WithTimeout(settleTimeout).Should(Equal(names), kind.Kind)
	}
	g.Expect(world.DeleteClass(t.Context(), s.key.Namespace)).To(Succeed())
}
