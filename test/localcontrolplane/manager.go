// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const managerContainer = "manager"

// installedKinds are what a manager's release needs in the cluster before its process starts. The Deployment and its
// certificates are played by this package, the CRDs are installed by InstallCRDs.
var installedKinds = []string{"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}

// ManagerSpec describes a manager that runs as its release would run it: with the flags, the ServiceAccount and the
// RBAC of its rendered kustomize folder.
type ManagerSpec struct {
	// Name of the process and of its log. Required; unique in a control plane; a valid file name.
	Name string
	// Package is the main package that is built, such as "./bootstrap". Not used when Binary is set.
	Package string
	// Binary is the path of the program. Default: Package is built.
	Binary string
	// Race builds Package with the race detector. A race that it finds is an error of the control plane's Stop.
	Race bool
	// Kustomize is the folder to render, absolute or relative to the repository's root. It must hold one Deployment with
	// a container called manager.
	Kustomize string
	// Provider is the value of the label cluster.x-k8s.io/provider of its release's objects. Required by RunInstalled.
	Provider string
	// Variables replace clusterctl's ${VARIABLE} expressions in the rendered objects. Default: what the expressions say.
	Variables map[string]string
	// Args are further flags in the form --name=value; they replace the Deployment's flags of the same name.
	Args []string
	// Credentials makes the kubeconfig file by which the process acts as user with groups. Default: a client certificate.
	Credentials func(user string, groups []string) (path string, err error)
}

// BootstrapManager returns the spec of this project's bootstrap provider.
func BootstrapManager() ManagerSpec {
	return ManagerSpec{
		Name: "bootstrap", Package: "./bootstrap", Kustomize: "config/bootstrap/default", Provider: "bootstrap-openshift-assisted",
	}
}

// ControlPlaneManager returns the spec of this project's control plane provider.
func ControlPlaneManager() ManagerSpec {
	return ManagerSpec{
		Name: "controlplane", Package: "./controlplane", Kustomize: "config/controlplane/default", Provider: "control-plane-openshift-assisted",
		Args: []string{"--resolve-releases=false"}, // No test asks a registry of the Internet.
	}
}

// Manager is a running manager.
type Manager struct {
	*Process
	// Namespace is the one of its Deployment, where its leader election lease is.
	Namespace string
	// User is its identity in the audit log: system:serviceaccount:NAMESPACE:NAME.
	User string
	// HealthURL serves /healthz and /readyz, such as http://127.0.0.1:20123.
	HealthURL string
	// DiagnosticsURL serves /metrics, with the authentication that the manager's flags ask for.
	DiagnosticsURL string
	// WebhookURL serves its webhooks.
	WebhookURL string
}

// DropLease deletes the Lease of a manager that has ended: it would hold its successor up for a while and nothing else.
func (m *Manager) DropLease(ctx context.Context, cl client.Client) error {
	if err := cl.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(m.Namespace)); err != nil {
		return fmt.Errorf("cannot delete the Lease of %s: %w", m.Name(), err)
	}
	return nil
}

// StartManager runs a manager and returns when it is ready and its admission webhooks are in force. It installs the
// Namespace, ServiceAccount and RBAC objects of the manager's release, and the process acts as that ServiceAccount by a
// client certificate, so it can do what the release allows and no more. Of the Deployment's flags only addresses,
// credentials and leader election (on) are replaced. Install the manager's CRDs first.
func (cp *ControlPlane) StartManager(ctx context.Context, spec ManagerSpec) (*Manager, error) {
	objects, err := cp.render(ctx, spec.Kustomize, spec.Variables)
	if err != nil {
		return nil, err
	}
	deployment, err := managerDeployment(objects)
	if err != nil {
		return nil, fmt.Errorf("cannot run %s from %s: %w", spec.Name, spec.Kustomize, err)
	}
	run, err := deploymentRun(spec, deployment)
	if err != nil {
		return nil, err
	}
	return cp.installAndRun(ctx, run, objects)
}

// managerRun is what our managers and Cluster API core do not have in common.
type managerRun struct {
	spec           ManagerSpec
	namespace      string
	serviceAccount string
	groups         []string // of its client certificate
	args           []string
	env            []string
	diagnostics    string // address; empty when the manager serves none
}

// deploymentRun returns how the manager of a Deployment runs here.
func deploymentRun(spec ManagerSpec, deployment *appsv1.Deployment) (managerRun, error) {
	port, err := freePort()
	if err != nil {
		return managerRun{}, err
	}
	diagnostics := address(localhost, port)
	pod := deployment.Spec.Template.Spec
	container, namespace := pod.Containers[0], deployment.Namespace
	own := []string{"--diagnostics-address=" + diagnostics, "--webhook-host=" + localhost, "--leader-elect=true"}
	return managerRun{
		spec: spec, namespace: namespace, serviceAccount: pod.ServiceAccountName,
		groups:      []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, auditedGroup},
		args:        overrideFlags(container.Args, append(own, spec.Args...)),
		env:         environment(container.Env, namespace, spec.Name),
		diagnostics: diagnostics,
	}, nil
}

// installAndRun installs a manager's release, but for its CRDs, and runs it.
func (cp *ControlPlane) installAndRun(ctx context.Context, run managerRun, objects []unstructured.Unstructured) (*Manager, error) {
	endpoint, err := cp.webhookEndpoint(run.spec.Name)
	if err != nil {
		return nil, err
	}
	webhooks, err := endpoint.admission(objects, everyService)
	if err != nil {
		return nil, err
	}
	manager, err := cp.newManager(ctx, run, endpoint)
	if err != nil {
		return nil, err
	}
	// The webhooks come before the process that serves them, as in a release: they are in force when it is ready, with no
	// moment in which a ready manager's webhooks are not called.
	if err := apply(ctx, cp.Admin(), append(ofKind(objects, installedKinds...), webhooks...)); err != nil {
		return nil, err
	}
	return manager, cp.start(ctx, manager.Process)
}

// newManager builds a manager and gives it credentials and addresses; it is not started.
func (cp *ControlPlane) newManager(ctx context.Context, run managerRun, endpoint *webhookEndpoint) (*Manager, error) {
	binary, err := cp.binary(ctx, run.spec)
	if err != nil {
		return nil, err
	}
	user := "system:serviceaccount:" + run.namespace + ":" + run.serviceAccount
	credentials := run.spec.Credentials
	if credentials == nil {
		credentials = func(user string, groups []string) (string, error) { return cp.Kubeconfig(user, groups...) }
	}
	kubeconfig, err := credentials(user, run.groups)
	if err != nil {
		return nil, err
	}
	healthPort, err := freePort()
	if err != nil {
		return nil, err
	}
	health := address(localhost, healthPort)
	process := cp.newProcess(processSpec{
		name: run.spec.Name, path: binary, env: run.env, race: run.spec.Race,
		args: overrideFlags(run.args, []string{
			"--kubeconfig=" + kubeconfig, "--health-addr=" + health,
			"--webhook-port=" + strconv.Itoa(endpoint.port), "--webhook-cert-dir=" + endpoint.certDir,
		}),
		ready: httpReady(&http.Client{Timeout: healthRequestTimeout}, "http://"+health+"/readyz"),
	})
	manager := &Manager{
		Process: process, Namespace: run.namespace, User: user, HealthURL: "http://" + health, WebhookURL: *endpoint.url(nil),
	}
	if run.diagnostics != "" {
		manager.DiagnosticsURL = "https://" + run.diagnostics
	}
	return manager, nil
}

func (cp *ControlPlane) binary(ctx context.Context, spec ManagerSpec) (string, error) {
	if spec.Binary != "" {
		return spec.Binary, nil
	}
	path := filepath.Join(cp.dir, "bin", spec.Name)
	if spec.Race {
		return path, cp.tools.BuildWithRace(ctx, spec.Package, path)
	}
	return path, cp.tools.Build(ctx, spec.Package, path)
}

// managerDeployment returns the one Deployment among objects, reduced to the container that is the manager.
func managerDeployment(objects []unstructured.Unstructured) (*appsv1.Deployment, error) {
	found := ofKind(objects, "Deployment")
	if len(found) != 1 {
		return nil, fmt.Errorf("it has %d Deployments, want one", len(found))
	}
	deployment := &appsv1.Deployment{}
	if err := fromUnstructured(found[0], deployment); err != nil {
		return nil, err
	}
	pod := &deployment.Spec.Template.Spec
	pod.Containers = slices.DeleteFunc(pod.Containers, func(c corev1.Container) bool { return c.Name != managerContainer })
	if len(pod.Containers) != 1 || pod.ServiceAccountName == "" {
		return nil, fmt.Errorf("deployment %s needs a serviceAccountName and a container called %s", deployment.Name, managerContainer)
	}
	return deployment, nil
}

// overrideFlags returns flags without those that overrides has too, followed by overrides. Flags are --name or
// --name=value.
func overrideFlags(flags, overrides []string) []string {
	name := func(flag string) string {
		name, _, _ := strings.Cut(flag, "=")
		return name
	}
	kept := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return slices.ContainsFunc(overrides, func(override string) bool { return name(override) == name(flag) })
	})
	return append(kept, overrides...)
}

// environment returns the container's environment as the kubelet would make it, for the fields that managers use.
func environment(variables []corev1.EnvVar, namespace, pod string) []string {
	environment := []string{"POD_NAMESPACE=" + namespace, "POD_NAME=" + pod, "POD_UID=" + pod}
	for _, variable := range variables {
		if variable.ValueFrom == nil {
			environment = append(environment, variable.Name+"="+variable.Value)
		}
	}
	return environment
}
