// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

var demo = types.NamespacedName{Namespace: "demo", Name: "demo"}

// hub returns a client of a management cluster with the objects of an Input.
func hub(g *WithT, in *Input, funcs interceptor.Funcs) client.Client {
	scheme, err := NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	in.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: kindControlPlane, Name: "demo"}
	objects := []client.Object{in.Cluster, in.ControlPlane, in.Install}
	labels := map[string]string{clusterv1.ClusterNameLabel: "demo"}
	for i := range in.Machines {
		in.Machines[i].Labels, in.Configs[i].Labels = labels, labels
		objects = append(objects, &in.Machines[i], &in.Configs[i])
	}
	for i := range in.Infrastructure {
		in.Infrastructure[i].SetLabels(labels)
		objects = append(objects, &in.Infrastructure[i], &in.Hosts[i])
	}
	for i := range in.Agents {
		objects = append(objects, &in.Agents[i])
	}
	for i := range in.Events {
		objects = append(objects, &in.Events[i])
	}
	metal3Machine := schema.GroupVersionKind{Group: metal3.InfrastructureGroup, Version: "v1beta1", Kind: metal3.MachineKind}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{metal3Machine.GroupVersion()})
	for gvk := range scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	mapper.Add(metal3Machine, meta.RESTScopeNamespace)
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

// TestCollect: what is read of a hub makes the same Report as the objects themselves.
func TestCollect(t *testing.T) {
	g := NewWithT(t)
	collected, err := Collect(t.Context(), hub(g, sixMachines(), interceptor.Funcs{}), demo)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(collected.Unread).To(BeEmpty())
	g.Expect([]int{
		len(collected.Machines), len(collected.Configs), len(collected.Infrastructure), len(collected.Hosts), len(collected.Agents),
		len(collected.Events),
	}).To(Equal([]int{6, 6, 5, 5, 4, 1}))
	g.Expect(collected.ControlPlane).NotTo(BeNil())
	g.Expect(collected.Install).NotTo(BeNil())
	g.Expect(New(collected).Faulty).To(Equal(2))
}

// TestScheme: every list can be asked for, which a client in memory does without; and no Secret can be read.
func TestScheme(t *testing.T) {
	g := NewWithT(t)
	scheme, err := NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	lists := 0
	for gvk := range scheme.AllKnownTypes() {
		g.Expect(gvk.Kind).NotTo(Equal("Secret"))
		if gvk.Kind == "EventList" || gvk.Kind == "AgentList" || gvk.Kind == "MachineList" {
			lists++
			_, err := runtime.NewParameterCodec(scheme).EncodeParameters(&metav1.ListOptions{}, gvk.GroupVersion())
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	g.Expect(lists).To(Equal(3))
}

// TestCollectWithoutRights: what cannot be read is named, and the rest is on the page.
func TestCollectWithoutRights(t *testing.T) {
	g := NewWithT(t)
	var kinds []string
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		kinds = append(kinds, fmt.Sprintf("%T", list))
		if _, agents := list.(*assisted.AgentList); agents {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "agents"}, "", errors.New("no"))
		}
		return c.List(ctx, list, opts...)
	}}
	collected, err := Collect(t.Context(), hub(g, sixMachines(), funcs), demo)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(collected.Unread).To(ConsistOf(HavePrefix("Agents cannot be read:")))
	g.Expect(kinds).To(HaveLen(7))
	g.Expect(kinds).NotTo(ContainElement(ContainSubstring("Secret")))
	g.Expect(render(g, collected)).To(ContainSubstring("Not in this report: Agents cannot be read"))
}

func TestCollectWithoutCluster(t *testing.T) {
	g := NewWithT(t)
	_, err := Collect(t.Context(), hub(g, oneMachine(), interceptor.Funcs{}), types.NamespacedName{Namespace: "demo", Name: "other"})
	g.Expect(err).To(MatchError(ContainSubstring("cannot read Cluster demo/other")))
}

// TestWriteFile: the page is for its owner alone.
func TestWriteFile(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), FileName("demo"))
	g.Expect(WriteFile(path, oneMachine())).To(Succeed())
	file, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	g.Expect(WriteFile(filepath.Join(path, "no"), oneMachine())).To(MatchError(ContainSubstring("cannot write the report")))
}
