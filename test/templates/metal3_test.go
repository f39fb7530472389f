// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	simmetal3 "github.com/capi-openshift/agent-providers/test/sim/metal3"
)

var variable = regexp.MustCompile(`\$\{([^}:]+)(?::=([^}]*))?\}`)

// TestMetal3APIVersions applies what the shipped templates have of Metal3's kinds where v1beta1 is the only version of their API, and where
// v1beta2 is stored and converted. Whoever applies a template again, as GitOps does, changes nothing, and a copy in v1beta1, as Cluster API
// makes one of the templates of a ClusterClass, is accepted.
func TestMetal3APIVersions(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	serveConversion(t, cp)
	cl, err := client.New(cp.Admin(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	manifests, objects := metal3Objects(t)

	for _, crds := range []localcontrolplane.CRDGroup{localcontrolplane.CRDsMetal3, localcontrolplane.CRDsMetal3V1Beta2} {
		g.Expect(cp.InstallCRDs(t.Context(), crds)).To(Succeed())
		namespace := string(crds)
		g.Expect(cl.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		apply := func() {
			_, err := cp.Run(t.Context(), "kubectl", nil, "apply", "-n", namespace, "-f", manifests)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		}
		apply()
		generations := map[string]int64{}
		for _, object := range objects {
			generations[object.GetName()] = get(t, cl, namespace, object).GetGeneration()
		}
		apply()
		for _, object := range objects {
			t.Run(namespace+"/"+object.GetName(), func(t *testing.T) {
				found := get(t, cl, namespace, object)
				g := NewWithT(t)
				g.Expect(found.GetGeneration()).To(Equal(generations[object.GetName()]), "applied again, it is as it was")
				copied := &unstructured.Unstructured{Object: map[string]any{"spec": found.Object["spec"]}}
				copied.SetGroupVersionKind(found.GroupVersionKind())
				copied.SetNamespace(namespace)
				copied.SetGenerateName("copy-")
				g.Expect(cl.Create(t.Context(), copied)).To(Succeed())
			})
		}
	}
}

func get(t *testing.T, cl client.Client, namespace string, object unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	NewWithT(t).Expect(cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: object.GetName()}, found)).To(Succeed())
	return found
}

// serveConversion serves the conversion webhook of Metal3's CRDs until the test ends.
func serveConversion(t *testing.T, cp *localcontrolplane.ControlPlane) {
	t.Helper()
	g := NewWithT(t)
	address, err := cp.WebhookServer(localcontrolplane.Simulators)
	g.Expect(err).NotTo(HaveOccurred())
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: address.Port, CertDir: address.CertDir})
	server.Register(simmetal3.ConversionPath, simmetal3.Conversion())
	done := make(chan error, 1)
	go func() { done <- server.Start(t.Context()) }()
	t.Cleanup(func() { g.Expect(<-done).To(Succeed()) })
}

// metal3Objects returns the objects of Metal3's kinds in all templates, each with a name of its own, and a file with them.
func metal3Objects(t *testing.T) (manifests string, objects []unstructured.Unstructured) {
	t.Helper()
	g := NewWithT(t)
	files := []string{classFile}
	for _, flavor := range sandbox.Flavors() {
		files = append(files, file(flavor))
	}
	for i, name := range append(files, file("")) {
		_, body := read(t, name)
		found, err := utilyaml.ToUnstructured([]byte(variable.ReplaceAllStringFunc(body, valueOf)))
		g.Expect(err).NotTo(HaveOccurred(), name)
		for _, object := range found {
			if object.GroupVersionKind().Group != metal3.InfrastructureGroup {
				continue
			}
			object.SetName(fmt.Sprintf("%d-%s-%s", i, strings.ToLower(object.GetKind()), object.GetName()))
			object.SetNamespace("")
			objects = append(objects, object)
		}
	}
	g.Expect(len(objects)).To(BeNumerically(">=", 2*len(files)))
	data, err := utilyaml.FromUnstructured(objects)
	g.Expect(err).NotTo(HaveOccurred())
	manifests = filepath.Join(t.TempDir(), "metal3.yaml")
	g.Expect(os.WriteFile(manifests, data, 0o600)).To(Succeed())
	return manifests, objects
}

// valueOf returns a value for a variable of a template, its default if it has one.
func valueOf(reference string) string {
	match := variable.FindStringSubmatch(reference)
	switch name, value := match[1], match[2]; {
	case value != "":
		return value
	case strings.HasSuffix(name, "_URL"):
		return "http://example.com/image"
	default:
		return "demo"
	}
}
