// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"strings"
)

// refusal is why one of several registries did not tell what an image is.
type refusal struct {
	image string
	err   error
}

// refusals has, in order, why each of the registries that were asked for an image did not tell what it is.
type refusals []refusal

func (r refusals) Error() string {
	return r.join(error.Error)
}

// Unwrap lets errors.Is look at each.
func (r refusals) Unwrap() []error {
	all := make([]error, len(r))
	for i, one := range r {
		all[i] = one.err
	}
	return all
}

func (r refusals) join(text func(error) string) string {
	parts := make([]string, len(r))
	for i, one := range r {
		parts[i] = fmt.Sprintf("%s: %s", one.image, text(one.err))
	}
	return strings.Join(parts, "; ")
}

const (
	// maxExplanation bounds the message for users, in bytes: a condition holds 32 KiB, and names of images may be long.
	maxExplanation = 4096
	// maxDetail bounds the part of an error that is logged, in bytes.
	maxDetail = 512
)

// Explain returns the message for users: the reason of an error, without details that change between attempts. The log has the details.
func Explain(err error) string {
	var several refusals
	if errors.As(err, &several) {
		return shortened(several.join(Explain), maxExplanation)
	}
	for _, reason := range []error{
		ErrManagementCluster, ErrPullSecret, ErrTrustBundle, ErrCAFile, ErrMirrorsFile, ErrManagementMirrors, ErrMirrors, ErrBlocked,
		ErrUnauthorized, ErrNotFound, ErrCertificate, ErrTimeout, ErrNoRelease,
	} {
		if errors.Is(err, reason) {
			return reason.Error()
		}
	}
	return ErrUnreachable.Error()
}

// detail is what is logged of an error: its first line. The registry client puts the answer of a server that gives out tokens below it.
func detail(err error) string {
	var several refusals
	if errors.As(err, &several) {
		return several.join(detail)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return shortened(first, maxDetail)
}

func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
