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
)

// maxOperations is how many objects etcd takes in one transaction, and maxBytes how large they may be together: etcd takes two mebibytes,
// keys and all.
const (
	maxOperations = 128
	maxBytes      = 3 << 19
)

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

// operation is one of etcd's transactions, in the JSON of its gateway to HTTP.
type operation struct {
	RequestPut         *putRequest    `json:"requestPut,omitempty"`
	RequestDeleteRange *deleteRequest `json:"requestDeleteRange,omitempty"`
}

type putRequest struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

type deleteRequest struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"rangeEnd"`
}

// Store writes objects into etcd, past the kube-apiserver, which sees them as if somebody had written them elsewhere. They keep their UIDs
// and all of their status, nothing is validated or audited, and thousands take seconds. Up to 128 objects make one
// transaction, which the API server shows object by object.
func (cp *ControlPlane) Store(ctx context.Context, objects []StoredObject) error {
	operations := make([]operation, 0, len(objects))
	for _, o := range objects {
		operations = append(operations, operation{RequestPut: &putRequest{Key: []byte(o.key()), Value: o.Data}})
	}
	return cp.etcd.change(ctx, operations)
}

// Erase removes objects from etcd in the same way, whatever their finalizers: all of a group and resource whose keys begin with that of the
// given object. One without a name stands for those of its namespace.
func (cp *ControlPlane) Erase(ctx context.Context, beginnings []StoredObject) error {
	operations := make([]operation, 0, len(beginnings))
	for _, o := range beginnings {
		key := []byte(o.key())
		if o.Name == "" {
			key = append(key, '/')
		}
		end := bytes.Clone(key)
		end[len(end)-1]++
		operations = append(operations, operation{RequestDeleteRange: &deleteRequest{Key: key, RangeEnd: end}})
	}
	return cp.etcd.change(ctx, operations)
}

// change makes transactions of operations.
func (e *etcd) change(ctx context.Context, operations []operation) error {
	for len(operations) > 0 {
		batch := operations[:fitting(operations)]
		if err := e.transaction(ctx, batch); err != nil {
			return fmt.Errorf("cannot change %d objects in etcd: %w", len(batch), err)
		}
		operations = operations[len(batch):]
	}
	return nil
}

// fitting is how many of some operations one transaction takes; at least one.
func fitting(operations []operation) int {
	size := 0
	for i, o := range operations {
		if o.RequestPut != nil {
			size += len(o.RequestPut.Key) + len(o.RequestPut.Value)
		}
		if i == maxOperations || i > 0 && size > maxBytes {
			return i
		}
	}
	return len(operations)
}

func (e *etcd) transaction(ctx context.Context, operations []operation) error {
	body, err := json.Marshal(map[string][]operation{"success": operations})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return err
	}
	return fmt.Errorf("etcd answers %s: %s", response.Status, answer)
}
