// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// list reads all objects, and returns those that are kept, with the version of all. The last page has the one of all pages. The first time
// an answer from the memory of the API server is good enough.
func (s *store) list(ctx context.Context) (map[client.ObjectKey]client.Object, state, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connection.config.Timeout)
	defer cancel()
	asks, err := s.connection.asks()
	if err != nil {
		return nil, state{}, err
	}
	objects, versions, version := map[client.ObjectKey]client.Object{}, versions{}, ""
	request := func() *rest.Request { return s.request(asks) }
	err = s.pages(ctx, request, !s.isKnown(), func(answer rest.Result) (string, error) {
		page, err := s.decode(answer)
		if err == nil {
			err = s.collect(page, objects, versions)
		}
		if err != nil {
			return "", err
		}
		version = page.GetResourceVersion()
		return page.GetContinue(), nil
	})
	if err != nil {
		return nil, state{}, err
	}
	return objects, state{version, versions.digest()}, nil
}

// pages reads page after page, of which there is one for most kinds, and gives each answer to take, which returns where the next page
// begins. fromMemory lets the API server answer from its memory, with all objects: it knows no pages there.
func (s *store) pages(
	ctx context.Context, request func() *rest.Request, fromMemory bool, take func(rest.Result) (next string, err error),
) error {
	for next := ""; ; {
		page := request()
		if s.kind.Page != 0 {
			page.Param("limit", strconv.FormatInt(s.kind.Page, 10))
		}
		switch {
		case next != "":
			page.Param("continue", next)
		case s.kind.Page == 0 && fromMemory:
			page.Param("resourceVersion", "0")
		}
		var err error
		if next, err = take(page.Do(ctx)); err != nil || next == "" {
			return err
		}
	}
}

// decode decodes a page.
func (s *store) decode(answer rest.Result) (client.ObjectList, error) {
	page, ok := s.kind.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", s.kind.list)
	}
	err := answer.Into(page)
	if apierrors.IsNotFound(err) {
		err = &meta.NoKindMatchError{GroupKind: s.kind.gvk.GroupKind(), SearchedVersions: []string{s.kind.gvk.Version}}
	}
	return page, err
}

// collect adds what is kept of a page. Beyond mostKept nothing is: a page more is no reason to know none of them.
func (s *store) collect(page client.ObjectList, objects map[client.ObjectKey]client.Object, versions versions) error {
	items, err := meta.ExtractList(page)
	if err != nil {
		return err
	}
	for _, item := range items {
		o, ok := item.DeepCopyObject().(client.Object) // Of the list's own items one would keep all in memory.
		if !ok {
			continue
		}
		versions.add(o)
		if len(objects) >= mostKept {
			continue
		}
		if kept := s.kind.keep(o); kept != nil {
			objects[client.ObjectKeyFromObject(kept)] = kept
		}
	}
	return nil
}

func (s *store) request(by rest.Interface) *rest.Request {
	request := by.Get().AbsPath(s.kind.path)
	if s.kind.Field != nil {
		request.Param("fieldSelector", s.kind.Field.String())
	}
	return request
}
