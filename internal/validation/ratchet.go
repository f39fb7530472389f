// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// index is the place of an item in a list, which changes when another item goes.
var index = regexp.MustCompile(`\[\d+\]`)

// Ratchet returns the problems of an update that the object did not have before it. What was accepted once, by an older release or past the
// webhook, must not keep everybody, the managers too, from changing anything else.
func Ratchet(before, after field.ErrorList) field.ErrorList {
	known := map[string]int{}
	for _, problem := range before {
		known[identity(problem)]++
	}
	var added field.ErrorList
	for _, problem := range after {
		if known[identity(problem)] > 0 {
			known[identity(problem)]--
			continue
		}
		added = append(added, problem)
	}
	return added
}

func identity(problem *field.Error) string {
	return fmt.Sprintf("%s %s %v %s", problem.Type, index.ReplaceAllString(problem.Field, "[]"), problem.BadValue, problem.Detail)
}
