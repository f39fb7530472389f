// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// probeTimeout bounds the request of a probe for one kind, or for /.
	probeTimeout = 5 * time.Second
	// onlyMetadata asks for nothing but the metadata of objects.
	onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// enough is for how long a probe begins to look at another kind.
const enough = time.Second

// probe finds out whether the cluster's API server answers, and takes the credential. Since it has to ask for something, it looks at kinds
// that no watch is open for: a watch costs as much memory as some objects, and a probe is sent anyway.
func (c *connection) probe(ctx context.Context) error {
	looked := c.turn()
	if len(looked) == 0 {
		return c.greet(ctx)
	}
	for from := time.Now(); len(looked) > 0 && time.Since(from) < enough; looked = looked[1:] {
		err := looked[0].look(ctx)
		if answered(err) {
			return c.greet(ctx) // That it does not tell of one kind says nothing of the cluster.
		}
		if err != nil {
			return err
		}
	}
	return nil // What is left has its turn with the next probe.
}

// greet sends HEAD /, of whose answer the status is all.
func (c *connection) greet(ctx context.Context) error {
	return c.rest.Verb(http.MethodHead).AbsPath("/").Timeout(probeTimeout).Do(ctx).Error()
}

// answered reports whether a failure is an answer, other than that the credential is refused.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !refused(err)
}

// turn are the kinds that the next probe looks at: one after the other has its turn, and those that may have changed have it now.
func (c *connection) turn() []*store {
	c.mu.Lock()
	defer c.mu.Unlock()
	var resting, changed []*store
	for _, k := range c.kinds {
		s := c.stores[k]
		if s == nil {
			continue
		}
		rests, may := s.atRest()
		if rests {
			resting = append(resting, s)
		}
		if may {
			changed = append(changed, s)
		}
	}
	if len(resting) == 0 {
		return nil
	}
	c.looks++
	if len(changed) == 0 {
		return []*store{resting[c.looks%len(resting)]}
	}
	first := c.looks % len(changed)
	return slices.Concat(changed[first:], changed[:first]) // A slow cluster answers the first one only.
}
