// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// module is the path of this module: the fields of its types are looked into, those of others are changed as a whole.
const module = "github.com/capi-openshift/agent-providers/"

// Changes are one change of every field of a spec that has no fields of its own, by the field's path. Lists are fields, whatever is in
// them. The new values are other ones, and not always such as the CustomResourceDefinition allows.
func Changes[T any]() map[string]func(*T) {
	changes := map[string]func(*T){}
	collect(reflect.TypeFor[T](), "spec", nil, func(path string, index []int) {
		changes[path] = func(spec *T) { change(reflect.ValueOf(spec).Elem().FieldByIndex(index)) }
	})
	return changes
}

func collect(typ reflect.Type, path string, index []int, add func(path string, index []int)) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := append(append([]int{}, index...), i)
		if field.Type.Kind() == reflect.Struct && strings.HasPrefix(field.Type.PkgPath(), module) {
			collect(field.Type, path+"."+name, at, add)
			continue
		}
		add(path+"."+name, at)
	}
}

// change gives a value that is not what it was.
func change(value reflect.Value) {
	if moment, ok := value.Addr().Interface().(*metav1.Time); ok {
		moment.Time = moment.Add(time.Hour)
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(value.String() + "changed")
	case reflect.Bool:
		value.SetBool(!value.Bool())
	case reflect.Int32, reflect.Int64:
		value.SetInt(value.Int() + 1)
	case reflect.Slice:
		value.Set(reflect.Append(value, reflect.Zero(value.Type().Elem())))
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(reflect.ValueOf("changed").Convert(value.Type().Key()), reflect.Zero(value.Type().Elem()))
	case reflect.Pointer:
		former := value.Elem()
		value.Set(reflect.New(value.Type().Elem()))
		if former.IsValid() {
			value.Elem().Set(former)
		}
		change(value.Elem()) // The zero value may be the default.
	case reflect.Struct:
		change(value.Field(0))
	default:
		panic(fmt.Sprintf("nobody has said how a %s is changed", value.Type()))
	}
}
