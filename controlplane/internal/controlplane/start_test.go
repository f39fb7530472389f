// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// beforeStart lets something happen between the read of the AgentClusterInstall and the patch that clears its hold, and counts these
// patches. One for which it returns an error does not reach the API server.
func (w *world) beforeStart(happens func() error) *int {
	patches := new(int)
	w.r.Client = w.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, install := o.(*hiveext.AgentClusterInstall); install && patch.Type() == types.JSONPatchType {
				*patches++
				if err := happens(); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	return patches
}

// hostsAreReady is a world in which the next pass starts the installation.
func hostsAreReady(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1, 0)
	w.run(nil, func() bool { return len(w.agents()) == 1 && w.agents()[0].ReadyToInstall() })
	NewWithT(t).Expect(w.install().Spec.HoldInstallation).To(BeTrue())
	w.recorded()
	return w
}

// TestStartWhileOthersWrite: the hold is cleared although others write to the AgentClusterInstall just before, unless they change the hold
// or the set of hosts, or delete or replace the AgentClusterInstall.
func TestStartWhileOthersWrite(t *testing.T) {
	const (
		set   = assisted.DayOneAgentsAnnotation
		agent = "agent-cp-0"
	)
	change := func(w *world, change func(*hiveext.AgentClusterInstall)) error {
		install := w.install()
		change(install)
		return w.client.Update(context.Background(), install)
	}
	for name, tc := range map[string]struct {
		fixed   string
		happens func(*world) error
		starts  bool
	}{
		"the service writes its status": {
			happens: func(w *world) error {
				w.says(assisted.ClusterStateReady, "Cluster ready to be installed")
				return nil
			}, starts: true,
		},
		"somebody adds an annotation": {
			happens: func(w *world) error {
				return change(w, func(i *hiveext.AgentClusterInstall) { i.Annotations["example.com/note"] = "x" })
			}, starts: true,
		},
		"of a set that is fixed, the service writes its status": {
			fixed: agent, happens: func(w *world) error {
				w.says(assisted.ClusterStateReady, "Cluster ready to be installed")
				return nil
			}, starts: true,
		},
		"of a set that is not sorted, the service writes its status": {
			fixed: "gone," + agent, happens: func(w *world) error {
				w.says(assisted.ClusterStateReady, "Cluster ready to be installed")
				return nil
			}, starts: true,
		},
		"somebody has cleared the hold": {
			happens: func(w *world) error {
				return change(w, func(i *hiveext.AgentClusterInstall) { i.Spec.HoldInstallation = false })
			},
		},
		"somebody has fixed a set": {
			happens: func(w *world) error {
				return change(w, func(i *hiveext.AgentClusterInstall) { i.Annotations[set] = "another" })
			},
		},
		"somebody has deleted it, and it waits for its finalizer": {
			happens: func(w *world) error {
				if err := change(w, func(i *hiveext.AgentClusterInstall) { i.Finalizers = []string{"example.com/x"} }); err != nil {
					return err
				}
				return w.client.Delete(context.Background(), w.install())
			},
		},
		"somebody has fixed another set": {
			fixed: agent, happens: func(w *world) error {
				return change(w, func(i *hiveext.AgentClusterInstall) { i.Annotations[set] = "another" })
			},
		},
		"another one of the same name has taken its place": {
			happens: func(w *world) error {
				another := w.install()
				if err := w.client.Delete(context.Background(), another); err != nil {
					return err
				}
				another.UID, another.ResourceVersion = "another", ""
				return w.client.Create(context.Background(), another)
			},
		},
		"it is gone": {happens: func(w *world) error { return w.client.Delete(context.Background(), w.install()) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := hostsAreReady(t)
			if tc.fixed != "" {
				g.Expect(change(w, func(i *hiveext.AgentClusterInstall) { i.Annotations[set] = tc.fixed })).To(Succeed())
			}
			patches := w.beforeStart(func() error { return tc.happens(w) })
			g.Expect(w.try()).To(Succeed())
			g.Expect(*patches).To(Equal(1))
			if !tc.starts {
				g.Expect(w.recorded()).NotTo(ContainElement(controlplanev1.EventInstallationStarted))
				return
			}
			g.Expect(w.recorded()).To(ContainElement(controlplanev1.EventInstallationStarted))
			g.Expect(w.install().Spec.HoldInstallation).To(BeFalse())
			g.Expect(w.install().Annotations).To(HaveKeyWithValue(set, cmp.Or(tc.fixed, agent)))
			g.Expect(w.install().Spec.ProvisionRequirements).To(Equal(hiveext.ProvisionRequirements{ControlPlaneAgents: 1}))
		})
	}
}

// TestStartThatIsRefused: a pass returns the error of the API server or of the service's webhook, and the next pass clears the hold.
func TestStartThatIsRefused(t *testing.T) {
	invalid := apierrors.NewInvalid(hiveext.GroupVersion.WithKind("AgentClusterInstall").GroupKind(), "cp", nil)
	for name, tc := range map[string]struct {
		refusal error
		says    string
	}{
		"it is not valid": {invalid, "the API server refused it"}, "nobody answers": {errors.New("EOF"), "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := hostsAreReady(t)
			refuses := tc.refusal
			w.beforeStart(func() error { return refuses })
			g.Expect(w.try()).To(MatchError(And(ContainSubstring("patch AgentClusterInstall"), ContainSubstring(tc.says))))
			g.Expect(w.recorded()).NotTo(ContainElement(controlplanev1.EventInstallationStarted))
			refuses = nil
			g.Expect(w.try()).To(Succeed())
			g.Expect(w.install().Spec.HoldInstallation).To(BeFalse())
		})
	}
}
