// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestMirrorsOfClusters(t *testing.T) {
	g := NewWithT(t)
	digests := &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "digests"}}
	digests.Spec.ImageDigestMirrors = []configv1.ImageDigestMirrors{
		{Source: "quay.io", Mirrors: []configv1.ImageMirror{"digests.example.com"}, MirrorSourcePolicy: configv1.NeverContactSource},
		{Source: "*.example.org", Mirrors: []configv1.ImageMirror{"all.example.com"}},
	}
	tags := &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "tags"}}
	tags.Spec.ImageTagMirrors = []configv1.ImageTagMirrors{{Source: "quay.io", Mirrors: []configv1.ImageMirror{"tags.example.com"}}}
	mirrors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mirrors"}}
	mirrors.Data = map[string]string{
		mirrorsKey: "[[registry]]\nlocation = 'quay.io'\n[[registry.mirror]]\nlocation = 'own.example.com'", "ca-bundle.crt": "ca",
	}
	objects := []client.Object{secret, digests, tags, mirrors}
	byName := Request{Image: request.Image, PullSecret: "pull", TrustBundle: "pem", MirrorRegistryRef: "mirrors"}

	r := NewResolver(fakeClient().WithObjects(objects...).Build(), nil)
	access, err := r.access(t.Context(), "ns", byName)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(access).To(And(HaveField("TrustBundle", "pem"), HaveField("MirrorsBundle", "ca")))
	for image, want := range map[string]string{
		"quay.io/rel:4":                    "own.example.com/rel:4 tags.example.com/rel:4",
		"quay.io/rel" + someDigest:         "own.example.com/rel" + someDigest + " digests.example.com/rel" + someDigest,
		"a.example.org/rel:4":              "a.example.org/rel:4",
		"a.b.example.org/rel" + someDigest: "all.example.com/rel" + someDigest + " a.b.example.org/rel" + someDigest,
	} {
		reference, err := name.ParseReference(image)
		g.Expect(err).NotTo(HaveOccurred())
		found, err := sources(reference, []Mirrors{access.Cluster, access.Management})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Join(namesOf(found), " ")).To(Equal(want), image)
	}

	for _, c := range []struct {
		name string
		data map[string]string
		want string
	}{
		{"other", nil, "ConfigMap other does not exist"},
		{"mirrors", map[string]string{"conf": ""}, "ConfigMap mirrors has no key registries.conf"},
		{"mirrors", map[string]string{mirrorsKey: "registry = 1"}, "ConfigMap mirrors: "},
	} {
		mirrors.Data, byName.MirrorRegistryRef = c.data, c.name
		_, err := NewResolver(fakeClient().WithObjects(secret, mirrors).Build(), nil).access(t.Context(), "ns", byName)
		g.Expect(err).To(And(MatchError(ErrMirrors), MatchError(ContainSubstring(c.want))))
	}
}

func TestManagementClustersThatAreNoOpenShift(t *testing.T) {
	g := NewWithT(t)
	var refusal error
	list := func(_ context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
		return refusal
	}
	r := NewResolver(fakeClient().WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build(), nil)
	refusal = &meta.NoKindMatchError{GroupKind: configv1.GroupVersion.WithKind("ImageDigestMirrorSet").GroupKind()}
	access, err := r.access(t.Context(), "ns", request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(access).To(Equal(Access{PullSecret: []byte("{}"), TrustBundle: "pem", Management: MirrorsOf(nil, nil)}))
	refusal = apierrors.NewNotFound(configv1.Resource("imagedigestmirrorsets"), "")
	_, err = r.access(t.Context(), "ns", request)
	g.Expect(err).NotTo(HaveOccurred(), "it is OpenShift no more")
	refusal = errors.New("the API server is down")
	_, err = r.access(t.Context(), "ns", request)
	g.Expect(err).To(MatchError(ErrManagementCluster))
}

// fakeClient knows what the resolver reads.
func fakeClient() *fake.ClientBuilder {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(configv1.Install(scheme))
	return fake.NewClientBuilder().WithScheme(scheme)
}
