// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// differences lists where an object has not what is wanted. Of maps only the wanted keys are compared, of lists every item; what is wanted
// to be null must not be there.
func differences(path string, wanted, actual any) []string {
	switch w := wanted.(type) {
	case nil:
		if actual == nil {
			return nil
		}
	case map[string]any:
		a, ok := actual.(map[string]any)
		if !ok {
			break
		}
		var found []string
		for _, key := range slices.Sorted(maps.Keys(w)) {
			found = append(found, differences(path+"."+key, w[key], a[key])...)
		}
		return found
	case []any:
		a, ok := actual.([]any)
		if !ok || len(a) != len(w) {
			break
		}
		var found []string
		for i := range w {
			found = append(found, differences(fmt.Sprintf("%s[%d]", path, i), w[i], a[i])...)
		}
		return found
	default:
		if reflect.DeepEqual(wanted, actual) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, want %v", path, actual, wanted)}
}
