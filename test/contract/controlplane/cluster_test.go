// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/kubeconfig"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// workload is a client of the installed cluster, past its address.
func (s *story) workload(g Gomega) client.Client {
	config, err := s.world.Workload.Config(s.install())
	g.Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(configv1.Install(scheme)).To(Succeed())
	g.Expect(machineconfigv1.Install(scheme)).To(Succeed())
	remote, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return remote
}

// expect checks the status of a condition.
func expect(g Gomega, o conditions.Getter, conditionType string, status metav1.ConditionStatus) {
	condition := conditions.Get(o, conditionType)
	g.Expect(condition).NotTo(BeNil(), conditionType)
	g.Expect(condition.Status).To(Equal(status), "%s: %s %s", conditionType, condition.Reason, condition.Message)
}

func (s *story) kubeconfigSecret(t *testing.T) {
	g := NewWithT(t)
	secrets := s.labelledSecrets(g)
	kubeconfigs := slices.DeleteFunc(secrets, func(secret corev1.Secret) bool { return !strings.HasSuffix(secret.Name, "-kubeconfig") })
	g.Expect(kubeconfigs).To(HaveLen(1))
	secret := kubeconfigs[0]
	g.Expect(secret.Name).To(Equal(clusterName + "-kubeconfig"))
	g.Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType))
	g.Expect(secret.Data).To(And(HaveLen(1), HaveKey("value")))
	g.Expect(secret.OwnerReferences).To(HaveLen(1))
	g.Expect(metav1.IsControlledBy(&secret, s.controlPlane(g))).To(BeTrue())
}

func (s *story) kubeconfigWorks(t *testing.T) {
	g := NewWithT(t)
	data, err := kubeconfig.FromSecret(t.Context(), s.world.Client, s.key())
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal("https://" + net.JoinHostPort(apiAddress, "6443")))
	g.Expect(config.ServerName).To(Equal("api." + clusterName + ".sandbox.example.com"))
	g.Expect(config.CAFile + config.CertFile + config.KeyFile + config.BearerTokenFile).To(BeEmpty())
	g.Expect(config.ExecProvider).To(BeNil())
	remote, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	nodes := &corev1.NodeList{}
	g.Expect(remote.List(t.Context(), nodes)).To(Succeed())
	g.Expect(nodes.Items).To(HaveLen(replicas + workers))
}

func (s *story) kubeconfigEarly(t *testing.T) {
	g := NewWithT(t)
	secret := &corev1.Secret{}
	s.get(g, clusterName+"-kubeconfig", secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	g.Expect(s.infraReady).To(BeTemporally(">=", secret.CreationTimestamp.Time))
}

func (s *story) initializedOnce(t *testing.T) {
	g := NewWithT(t)
	install := &hiveext.AgentClusterInstall{}
	s.get(g, s.install().Name, install)
	completed := assisted.ClusterCondition(install, hiveext.ClusterCompletedCondition)
	initialized := conditions.GetLastTransitionTime(s.controlPlane(g), controlplanev1.InitializedCondition)
	g.Expect(completed.LastTransitionTime.Time).NotTo(BeTemporally(">", initialized.Time))
	_, versions := s.history()
	before := false
	for _, version := range versions {
		flag := ptr.Deref(version.Status.Initialization.ControlPlaneInitialized, false)
		g.Expect(before && !flag).To(BeFalse(), "version %s took it back", version.ResourceVersion)
		before = flag
	}
	g.Expect(before).To(BeTrue())
}

func (s *story) coreWritesNoKubeconfig(t *testing.T) {
	g := NewWithT(t)
	cluster := s.cluster(g)
	expect(g, cluster, clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionTrue)
	g.Expect(cluster.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
	for _, e := range s.writes(g, by("", "create", "secrets")) {
		if e.ObjectRef.Name == clusterName+"-kubeconfig" {
			g.Expect(e.User.Username).To(Equal(s.world.ControlPlane.User))
		}
	}
}

func (s *story) clusterOwner(t *testing.T) {
	g := NewWithT(t)
	cluster, controlPlane := s.cluster(g), s.controlPlane(g)
	g.Expect(controlPlane.OwnerReferences).To(HaveLen(1))
	g.Expect(controlPlane.OwnerReferences[0].UID).To(Equal(cluster.UID))
	g.Expect(metav1.GetControllerOf(controlPlane)).To(BeNil())
	g.Expect(controlPlane.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, clusterName))
	g.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{Host: apiAddress, Port: 6443}))
}

func (s *story) clusterStatus(t *testing.T) {
	eventually(t, settleTimeout, func(g Gomega) {
		cluster, controlPlane := s.cluster(g), s.controlPlane(g)
		for _, condition := range []string{
			clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterControlPlaneMachinesReadyCondition,
			clusterv1.ClusterControlPlaneMachinesUpToDateCondition,
		} {
			expect(g, cluster, condition, metav1.ConditionTrue)
		}
		for _, condition := range []string{clusterv1.ClusterRollingOutCondition, clusterv1.ClusterScalingUpCondition,
			clusterv1.ClusterScalingDownCondition} {
			expect(g, cluster, condition, metav1.ConditionFalse)
		}
		expect(g, controlPlane, controlplanev1.EtcdClusterHealthyCondition, metav1.ConditionTrue)
		expect(g, controlPlane, controlplanev1.ControlPlaneComponentsHealthyCondition, metav1.ConditionTrue)
		shown := cluster.Status.ControlPlane
		g.Expect(shown).NotTo(BeNil())
		for _, count := range []*int32{
			shown.DesiredReplicas, shown.Replicas, shown.ReadyReplicas, shown.AvailableReplicas, shown.UpToDateReplicas,
			controlPlane.Status.Replicas, controlPlane.Status.ReadyReplicas, controlPlane.Status.AvailableReplicas,
			controlPlane.Status.UpToDateReplicas,
		} {
			g.Expect(count).To(HaveValue(BeEquivalentTo(replicas)))
		}
		g.Expect(shown.Versions).To(Equal(controlPlane.Status.Versions))
		g.Expect(shown.Versions).To(Equal([]clusterv1.StatusVersion{{Version: sandbox.KubernetesVersion, Replicas: replicas}}))
	})
}

func (s *story) scalingWasTold(t *testing.T) {
	_, versions := s.history()
	NewWithT(t).Expect(slices.ContainsFunc(versions, func(version *controlplanev1.OpenshiftAssistedControlPlane) bool {
		return conditions.IsTrue(version, controlplanev1.ScalingDownCondition) && !version.DeletionTimestamp.IsZero()
	})).To(BeTrue())
}

func (s *story) connected(t *testing.T) {
	g := NewWithT(t)
	expect(g, s.cluster(g), clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionTrue)
}

// etcdHealth changes what the operator of etcd says: one member is lost, then the quorum, then all is well again.
func (s *story) etcdHealth(t *testing.T) {
	report := func(available, degraded configv1.ConditionStatus, message string) {
		g := NewWithT(t)
		remote, operator := s.workload(g), &configv1.ClusterOperator{}
		g.Expect(remote.Get(context.Background(), client.ObjectKey{Name: "etcd"}, operator)).To(Succeed())
		before := operator.DeepCopy()
		operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: available, Message: message, LastTransitionTime: metav1.Now()},
			{Type: configv1.OperatorDegraded, Status: degraded, Message: message, LastTransitionTime: metav1.Now()},
		}
		g.Expect(remote.Status().Patch(context.Background(), operator, client.MergeFrom(before))).To(Succeed())
	}
	says := func(healthy, available metav1.ConditionStatus, message string) {
		t.Helper()
		eventually(t, settleTimeout, func(g Gomega) {
			controlPlane := s.controlPlane(g)
			expect(g, controlPlane, controlplanev1.EtcdClusterHealthyCondition, healthy)
			expect(g, controlPlane, controlplanev1.AvailableCondition, available)
			g.Expect(conditions.GetMessage(controlPlane, controlplanev1.EtcdClusterHealthyCondition)).To(ContainSubstring(message))
			expect(g, s.cluster(g), clusterv1.ClusterControlPlaneAvailableCondition, available)
		})
	}
	report(configv1.ConditionTrue, configv1.ConditionTrue, "2 of 3 members are available")
	says(metav1.ConditionFalse, metav1.ConditionTrue, "2 of 3 members are available")
	report(configv1.ConditionFalse, configv1.ConditionTrue, "1 of 3 members is available")
	says(metav1.ConditionFalse, metav1.ConditionFalse, "1 of 3 members is available")
	report(configv1.ConditionTrue, configv1.ConditionFalse, "")
	says(metav1.ConditionTrue, metav1.ConditionTrue, "")
}
