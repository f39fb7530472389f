// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Kind is a kind that can be watched in installed clusters, and what of it is.
type Kind struct {
	// Object is an empty object of the kind.
	Object client.Object
	// Namespace is where its objects are; empty is everywhere.
	Namespace string
	// Field selects its objects; nil selects all.
	Field fields.Selector
	// Herald: when one of its objects has changed, those of others have too, more often than not. The next probe looks at all of them.
	Herald bool
	// Keep is what is kept in memory of an object, which it may change: nil is nothing. Without it all is kept but the managed fields.
	Keep func(client.Object) client.Object
	// Page is how many of its objects one request reads, for a kind of which there can be more than one answer may have; 0 is all of them.
	Page int64
}

// kind is a Kind with all that every connection needs to ask for it.
type kind struct {
	Kind

	gvk     schema.GroupVersionKind
	path    string
	list    client.ObjectList
	decoder runtime.Decoder
}

// newKinds prepares kinds once for all connections.
func newKinds(scheme *runtime.Scheme, mapper meta.RESTMapper, wanted []Kind) ([]*kind, error) {
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	codec, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("no serializer of %s", runtime.ContentTypeJSON)
	}
	kinds := make([]*kind, 0, len(wanted))
	for _, k := range wanted {
		gvk, err := apiutil.GVKForObject(k.Object, scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of a %T: %w", k.Object, err)
		}
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
		}
		o, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return nil, fmt.Errorf("make a list of %s: %w", gvk.Kind, err)
		}
		list, ok := o.(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", o)
		}
		kinds = append(kinds, &kind{
			Kind: k, gvk: gvk, path: pathOf(mapping.Resource, k.Namespace), list: list,
			decoder: codecs.DecoderToVersion(codec.Serializer, nil),
		})
	}
	return kinds, nil
}

// pathOf is where the objects of a resource are served.
func pathOf(resource schema.GroupVersionResource, namespace string) string {
	path := "/apis/" + resource.GroupVersion().String()
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource.Resource
}

func (k *kind) keep(o client.Object) client.Object {
	if k.Keep == nil {
		return withoutManagedFields(o)
	}
	return k.Keep(o)
}

// is reports whether an object is of the kind, or a list of its objects.
func (k *kind) is(o runtime.Object) bool {
	return reflect.TypeOf(o) == reflect.TypeOf(k.Object) || reflect.TypeOf(o) == reflect.TypeOf(k.list)
}
