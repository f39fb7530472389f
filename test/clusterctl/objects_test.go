// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func objectsOf(g *WithT, list client.ObjectList) []client.Object {
	var objects []client.Object
	g.Expect(meta.EachListItem(list, func(object runtime.Object) error {
		objects = append(objects, object.(client.Object))
		return nil
	})).To(Succeed())
	return objects
}

func typeName(object client.Object) string { return fmt.Sprintf("%T", object) }
