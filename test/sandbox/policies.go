// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// WritePolicies are the files of config/policy that limit what the managers write, by the names of the managers.
var WritePolicies = map[string]string{
	"bootstrap": "policy-bootstrap-writes.yaml", "controlplane": "policy-control-plane-writes.yaml",
}

// ApplyPolicies makes the objects of WritePolicies. root is the folder of the repository. The API server acts on them some time later.
func ApplyPolicies(ctx context.Context, cl client.Client, root string) error {
	for _, file := range WritePolicies {
		data, err := os.ReadFile(filepath.Join(root, "config", "policy", file))
		if err != nil {
			return fmt.Errorf("cannot read an admission policy: %w", err)
		}
		objects, err := utilyaml.ToUnstructured(data)
		if err != nil {
			return fmt.Errorf("cannot read the admission policy in %s: %w", file, err)
		}
		for i := range objects {
			if err := cl.Create(ctx, &objects[i]); err != nil {
				return fmt.Errorf("cannot create the admission policy in %s: %w", file, err)
			}
		}
	}
	return nil
}

// PoliciesInForce tries, as each manager, to create a Secret that nobody may, and fails unless a policy refuses it.
func (w *World) PoliciesInForce(ctx context.Context) error {
	for _, manager := range []*localcontrolplane.Manager{w.Bootstrap, w.ControlPlane} {
		config := unlimited(w.Management.Admin())
		config.Impersonate = rest.ImpersonationConfig{UserName: manager.User}
		cl, err := client.New(config, client.Options{})
		if err != nil {
			return fmt.Errorf("cannot connect as %s: %w", manager.User, err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "forbidden"}}
		err = cl.Create(ctx, secret, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("no policy refused a Secret of %s: %w", manager.Name(), cmp.Or(err, errors.New("it was created")))
		}
	}
	return nil
}
