// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"time"
)

// statusTimeout bounds the write of a status, beyond the time of the pass that it belongs to.
const statusTimeout = 10 * time.Second

// ForStatus returns a context to write a status with. It does not end with the pass: a pass that used up its time has to say why, or its
// object shows nothing at all.
func ForStatus(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
}
