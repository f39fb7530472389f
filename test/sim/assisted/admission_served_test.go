// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"strings"
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// serveAdmission runs the webhooks for the fixture's namespace.
func (f *fixture) serveAdmission() {
	f.t.Helper()
	address, err := management.WebhookServer(localcontrolplane.Simulators)
	must(f.t, err)
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: address.Port, CertDir: address.CertDir})
	ServeAdmission(server, server, f.client)
	go func() {
		if err := server.Start(f.ctx); err != nil {
			f.t.Errorf("the webhook server failed: %v", err)
		}
	}()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}}
	configurations := AdmissionConfigurations()
	for _, configuration := range configurations {
		switch c := configuration.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			c.Webhooks[0].NamespaceSelector = selector
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			c.Webhooks[0].NamespaceSelector = selector
		}
	}
	must(f.t, management.InstallWebhooks(f.ctx, localcontrolplane.Simulators, configurations...))
	f.t.Cleanup(func() {
		for _, configuration := range configurations {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(configuration.GetObjectKind().GroupVersionKind())
			object.SetName(configuration.GetName())
			must(f.t, client.IgnoreNotFound(f.client.Delete(context.Background(), object)))
		}
	})
	f.eventually("the webhooks to be asked", func() bool {
		env := &aiv1.InfraEnv{ObjectMeta: f.meta("refused"), Spec: aiv1.InfraEnvSpec{
			PullSecretRef: &corev1.LocalObjectReference{Name: "pull-secret"},
			ClusterRef:    &aiv1.ClusterReference{Namespace: f.namespace, Name: "c"}, OSImageVersion: "4.20",
		}}
		return apierrors.IsBadRequest(f.client.Create(f.ctx, env, client.DryRunAll))
	})
}

// TestAdmissionIsServed: the API server refuses what the webhooks refuse, defaults what they default, and a cluster can still be
// installed, and be deleted in the middle: the service itself gets past them.
func TestAdmissionIsServed(t *testing.T) {
	f := newFixture(t, Options{})
	f.serveAdmission()
	f.cluster("c1", 1, 0, true)
	if userManaged := f.aci("c1").Spec.Networking.UserManagedNetworking; userManaged == nil || !*userManaged {
		t.Error("nobody said who manages the network of a single node")
	}
	f.infraEnv("ie", "")
	f.sim.Faults().StageHang(f.key("m0"), StageInstalling)
	name := f.boot("m0", "ie")
	f.waitAgent(name, hostKnownUnbound)
	f.patchAgent(name, func(a *aiv1.Agent) {
		a.Spec.Approved, a.Spec.ClusterDeploymentName = true, &aiv1.ClusterReference{Namespace: f.namespace, Name: "c1"}
	})
	f.waitAgent(name, hostKnown)
	f.patchACI("c1", func(aci *hiveext.AgentClusterInstall) { aci.Spec.HoldInstallation = false })
	f.eventually("the metadata", func() bool { return f.aci("c1").Spec.ClusterMetadata != nil })

	aci := f.aci("c1")
	before := aci.DeepCopy()
	aci.Spec.SSHPublicKey = "ssh-ed25519 AAAA"
	err := f.client.Patch(f.ctx, aci, client.MergeFrom(before))
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "immutable after install started") {
		t.Errorf("a late change was answered with %v", err)
	}
	f.waitAgent(name, hostInstallingInProgress)
	f.deleteInstall("c1")
	f.waitAgent(name, hostKnownUnbound)
	if ref := f.agent(name).Spec.ClusterDeploymentName; ref != nil {
		t.Errorf("the Agent of a deleted cluster still names %v", ref)
	}
}
