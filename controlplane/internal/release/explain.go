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

// refusals are those of all that were asked for an image, in order.
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
	// maxExplanation bounds what users are told, in bytes: a condition holds 32 KiB, and names of images may be long.
	maxExplanation = 4096
	// maxDetail bounds what of an error is logged.
	maxDetail = 512
)

// Explain is what users are told of an error: the reason, without details that change between attempts. Those are in the log.
func Explain(err error) string {
	var several refusals
	if errors.As(err, &several) {
		return shortened(several.join(Explain), maxExplanation)
	}
	for _, reason := range []error{
		ErrManagementCluster, ErrPullSecret, ErrTrustBundle, ErrCAFile, ErrMirrorsFile, ErrManagementMirrors, ErrMirrors, ErrBlocked,
		ErrUnauthorized,
		ErrNotFound, ErrCertificate, ErrTimeout, ErrNoRelease,
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
