// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// RunInstalled runs a manager whose release is in the cluster already, installed by clusterctl, the Cluster API operator or kubectl, and
// returns when it is ready. The release must have one Deployment. Of spec, Kustomize and Variables are not used; a process of the same
// name that was stopped is replaced. RunInstalled plays what a cluster without nodes lacks:
//   - kubelet: the process has the flags, the environment and the rights of the Deployment's pod, replaced as StartManager does. No image
//     is pulled, no Secret is mounted and no probe is run: of those, test/release checks only that they fit together.
//   - kube-proxy: the webhooks behind the Services that select the pod lead to the process.
//   - cert-manager: the process gets a serving certificate, and its webhooks the authority.
//   - the Deployment controller: the Deployment becomes Available when the process is ready. Its replicas stay at 0, so that clusterctl
//     need not wait for pods to end.
func (cp *ControlPlane) RunInstalled(ctx context.Context, spec ManagerSpec) (*Manager, error) {
	return cp.runInstalled(ctx, spec, deploymentRun)
}

// RunInstalledCore does the same for Cluster API core, with the program and the rights of StartCore.
func (cp *ControlPlane) RunInstalledCore(ctx context.Context) (*Manager, error) {
	spec, err := cp.coreManager(ctx)
	if err != nil {
		return nil, err
	}
	return cp.runInstalled(ctx, spec, func(spec ManagerSpec, _ *appsv1.Deployment) (managerRun, error) { return coreRun(spec), nil })
}

func (cp *ControlPlane) runInstalled(
	ctx context.Context, spec ManagerSpec, runOf func(ManagerSpec, *appsv1.Deployment) (managerRun, error),
) (*Manager, error) {
	cl, err := cp.installedClient()
	if err != nil {
		return nil, err
	}
	deployment, err := installedDeployment(ctx, cl, spec.Provider)
	if err != nil {
		return nil, err
	}
	run, err := runOf(spec, deployment)
	if err != nil {
		return nil, err
	}
	endpoint, err := cp.webhookEndpoint(run.spec.Name)
	if err != nil {
		return nil, err
	}
	manager, err := cp.newManager(ctx, run, endpoint)
	if err != nil {
		return nil, err
	}
	if err := endpoint.rewireInstalled(ctx, cl, deployment); err != nil {
		return nil, err
	}
	if err := cp.start(ctx, manager.Process); err != nil {
		return nil, err
	}
	return manager, setAvailable(ctx, cl, deployment)
}

func (cp *ControlPlane) installedClient() (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register the API types: %w", err)
		}
	}
	cl, err := client.New(cp.Admin(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the management cluster: %w", err)
	}
	return cl, nil
}

// installedDeployment returns the provider's only Deployment, whose pod would start: its ServiceAccount exists.
func installedDeployment(ctx context.Context, cl client.Client, provider string) (*appsv1.Deployment, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	if err := cl.List(ctx, found, client.MatchingLabels{clusterv1.ProviderNameLabel: provider}); err != nil {
		return nil, fmt.Errorf("cannot list the Deployments of provider %s: %w", provider, err)
	}
	deployment, err := managerDeployment(found.Items)
	if err != nil {
		return nil, fmt.Errorf("cannot run provider %s as it is installed: %w", provider, err)
	}
	account := client.ObjectKey{Namespace: deployment.Namespace, Name: deployment.Spec.Template.Spec.ServiceAccountName}
	if err := cl.Get(ctx, account, &corev1.ServiceAccount{}); err != nil {
		return nil, fmt.Errorf("the pod of Deployment %s could not start: %w", client.ObjectKeyFromObject(deployment), err)
	}
	return deployment, nil
}

// rewireInstalled points the webhooks in the cluster that lead to the Deployment's pod to this endpoint.
func (w *webhookEndpoint) rewireInstalled(ctx context.Context, cl client.Client, deployment *appsv1.Deployment) error {
	behind, err := servicesOf(ctx, cl, deployment)
	if err != nil {
		return err
	}
	var objects []unstructured.Unstructured
	for _, kind := range []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := cl.List(ctx, list); err != nil {
			return fmt.Errorf("cannot list what has webhooks: %w", err)
		}
		objects = append(objects, list.Items...)
	}
	webhooks, err := w.admission(objects, behind)
	if err != nil {
		return err
	}
	crds, err := toCRDs(objects)
	if err != nil {
		return err
	}
	for i := range webhooks { // Those of others do not change, which is no write.
		if err := cl.Update(ctx, &webhooks[i]); err != nil {
			return fmt.Errorf("cannot update the webhooks of %s: %w", webhooks[i].GetName(), err)
		}
	}
	for _, crd := range w.rewireCRDs(crds, behind) {
		if err := cl.Update(ctx, crd); err != nil {
			return fmt.Errorf("cannot update the conversion of %s: %w", crd.Name, err)
		}
	}
	return nil
}

// servicesOf returns the Services that select the Deployment's pod.
func servicesOf(ctx context.Context, cl client.Client, deployment *appsv1.Deployment) (services, error) {
	list := &corev1.ServiceList{}
	if err := cl.List(ctx, list, client.InNamespace(deployment.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the Services of Deployment %s: %w", client.ObjectKeyFromObject(deployment), err)
	}
	selecting := map[string]bool{}
	for _, service := range list.Items {
		selector := service.Spec.Selector
		selecting[service.Name] = len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(deployment.Spec.Template.Labels))
	}
	return func(namespace, name string) bool { return namespace == deployment.Namespace && selecting[name] }, nil
}

func setAvailable(ctx context.Context, cl client.Client, deployment *appsv1.Deployment) error {
	before := deployment.DeepCopy()
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
		Reason: "MinimumReplicasAvailable", Message: "The manager runs as a process.",
	}}
	if err := cl.Status().Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot make Deployment %s Available: %w", client.ObjectKeyFromObject(deployment), err)
	}
	return nil
}
