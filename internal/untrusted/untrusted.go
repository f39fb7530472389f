// SPDX-License-Identifier: Apache-2.0

// Package untrusted bounds what a document of a user, a host or a registry can make its parser allocate. Ask it before the parser: one
// document must not take the memory of the manager, which works for all tenants. Its errors never quote the document.
package untrusted

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how deep objects and lists may be nested. Parsers call themselves for each level, and the deepest document that the managers
// read, an ignition config, has nine.
const maxDepth = 64

// Limits are the limits of one kind of document.
type Limits struct {
	// Bytes is the size of the largest document.
	Bytes int
	// Values is the largest number of objects, lists, strings and numbers in a document. "{}," has three bytes and becomes hundreds.
	Values int
}

var (
	// ErrSyntax says that a document is no YAML at all.
	ErrSyntax = errors.New("it cannot be parsed as YAML")

	errAlias = errors.New("it has a YAML alias (*name), with which a short document becomes a huge one: write out what the alias stands for")
)

// Size checks the size alone.
func (l Limits) Size(document []byte) error {
	if len(document) > l.Bytes {
		return fmt.Errorf("it is too long: no more than %d bytes are read", l.Bytes)
	}
	return nil
}

// JSON checks a JSON document. Whether it is one is for the parser to say.
func (l Limits) JSON(document []byte) error {
	if err := l.Size(document); err != nil {
		return err
	}
	depth, values := 0, 1
	for at := 0; at < len(document); at++ {
		switch document[at] {
		case '"':
			at += stringLength(document[at:]) - 1
		case '{', '[':
			depth++
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if err := l.check(depth, values); err != nil {
			return err
		}
	}
	return nil
}

// stringLength is the length of the string, with its quotes, that the document begins with.
func stringLength(document []byte) int {
	for at := 1; at < len(document); at++ {
		switch document[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(document)
}

// YAML checks a YAML document, which may be JSON. Aliases are refused.
func (l Limits) YAML(document []byte) error {
	if err := l.Size(document); err != nil {
		return err
	}
	root := &yaml.Node{}
	if err := yaml.Unmarshal(document, root); err != nil {
		return ErrSyntax // The error of the parser quotes the document.
	}
	values := 0
	return l.node(root, 0, &values)
}

// node checks a part of a YAML document. values counts those that were seen before.
func (l Limits) node(node *yaml.Node, depth int, values *int) error {
	if node.Kind == yaml.AliasNode {
		return errAlias
	}
	*values++
	if err := l.check(depth, *values); err != nil {
		return err
	}
	for _, child := range node.Content {
		if err := l.node(child, depth+1, values); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) check(depth, values int) error {
	if depth > maxDepth {
		return fmt.Errorf("its objects and lists are nested more than %d deep", maxDepth)
	}
	if values > l.Values {
		return fmt.Errorf("it has more than %d values", l.Values)
	}
	return nil
}
