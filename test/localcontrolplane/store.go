// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// storing is how many objects are written, or removed, at the same time.
const storing = 16

// StoredObject is an object as the management cluster's kube-apiserver keeps it in etcd.
type StoredObject struct {
	// Group and Resource are those of its API, such as cluster.x-k8s.io and machines. The group of kinds that Kubernetes itself brings is
	// empty, as far as this package stores any: Namespaces, Secrets and ConfigMaps.
	Group, Resource string
	// Namespace is empty for objects of the whole cluster.
	Namespace, Name string
	// Data is the object as JSON, in the version that is stored, with its UID and without a resourceVersion.
	Data []byte
}

// key is where etcd has the object.
func (o StoredObject) key() string {
	return path.Join(managementPrefix, o.Group, o.Resource, o.Namespace, o.Name)
}

// Store writes objects into etcd, past the kube-apiserver, which sees them as if somebody had written them elsewhere. They keep their UIDs
// and all of their status, nothing is validated or audited, and thousands take seconds. Owners are stored before what they own: the garbage
// collector deletes what it sees before its owner is there.
func (cp *ControlPlane) Store(ctx context.Context, objects []StoredObject) error {
	generations, err := ownersFirst(objects)
	if err != nil {
		return err
	}
	for _, generation := range generations {
		err := each(ctx, generation, func(ctx context.Context, o StoredObject) error {
			return cp.etcd.call(ctx, "put", putRequest{Key: []byte(o.key()), Value: o.Data}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ownersFirst sorts objects into generations: the owners of each object, as far as they are among the objects, are in earlier ones.
func ownersFirst(objects []StoredObject) (generations [][]StoredObject, err error) {
	owners := map[types.UID][]metav1.OwnerReference{}
	uids := make([]types.UID, len(objects))
	for i, o := range objects {
		read := metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(o.Data, &read); err != nil {
			return nil, fmt.Errorf("read the metadata of %s: %w", o.key(), err)
		}
		uids[i], owners[read.UID] = read.UID, read.OwnerReferences
	}
	known := map[types.UID]int{}
	var generationOf func(types.UID) int
	generationOf = func(uid types.UID) int {
		if generation, done := known[uid]; done {
			return generation
		}
		known[uid] = 0 // Owners in a circle end here.
		generation := 0
		for _, owner := range owners[uid] {
			if _, stored := owners[owner.UID]; stored {
				generation = max(generation, generationOf(owner.UID)+1)
			}
		}
		known[uid] = generation
		return generation
	}
	for i, o := range objects {
		generation := generationOf(uids[i])
		for len(generations) <= generation {
			generations = append(generations, nil)
		}
		generations[generation] = append(generations[generation], o)
	}
	return generations, nil
}

// Erase removes objects from etcd in the same way, whatever their finalizers: all of a group and resource whose keys begin with that of the
// given object. One without a name stands for those of its namespace.
func (cp *ControlPlane) Erase(ctx context.Context, beginnings []StoredObject) error {
	for _, o := range beginnings {
		keys, err := cp.etcd.keys(ctx, o)
		if err != nil {
			return err
		}
		err = each(ctx, keys, func(ctx context.Context, key []byte) error {
			return cp.etcd.call(ctx, "deleterange", keyRange{Key: key}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each does something with every one of some things, several at a time. Each write is a request of its own, as those of a kube-apiserver
// are: etcd gives all objects of a transaction the same revision, and a watch that begins when its kube-apiserver has seen some of them
// never tells of the others.
func each[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	doing, ctx := errgroup.WithContext(ctx)
	doing.SetLimit(storing)
	for _, one := range all {
		doing.Go(func() error { return do(ctx, one) })
	}
	return doing.Wait()
}

// putRequest and keyRange are requests of etcd's gateway to HTTP.
type putRequest struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

type keyRange struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end,omitempty"`
	KeysOnly bool   `json:"keys_only,omitempty"`
}

// keys are the keys in etcd that begin with that of an object.
func (e *etcd) keys(ctx context.Context, beginning StoredObject) ([][]byte, error) {
	from := []byte(beginning.key())
	if beginning.Name == "" {
		from = append(from, '/')
	}
	to := bytes.Clone(from)
	to[len(to)-1]++
	var found struct {
		KVs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	err := e.call(ctx, "range", keyRange{Key: from, RangeEnd: to, KeysOnly: true}, &found)
	var keys [][]byte
	for _, one := range found.KVs {
		keys = append(keys, one.Key)
	}
	return keys, err
}

// call sends a request to etcd, and reads the answer unless it is to be nil.
func (e *etcd) call(ctx context.Context, method string, what, answer any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode a request to etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make a request to etcd: %w", err)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", method, err)
	}
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body) // To its end, so that the connection is used again.
	if err != nil {
		return fmt.Errorf("read etcd's answer to %s: %w", method, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s to %s: %.1024s", response.Status, method, told)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(told, answer); err != nil {
		return fmt.Errorf("decode etcd's answer to %s: %w", method, err)
	}
	return nil
}
