// SPDX-License-Identifier: Apache-2.0

// Package untrusted bounds what a document of a user, a host or a registry can make its parser allocate. Ask it before the parser: one
// document must not take the memory of the manager, which works for all tenants. Its errors never quote the document.
package untrusted

import (
	"bytes"
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
	// Items is the largest number of values that a list in the outermost object may have, as the list of a kind of Kubernetes; 0 is any. Such
	// an item becomes a thousand bytes.
	Items int
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
	return l.Counter().Count(document)
}

// Counter counts what is in a JSON document that comes piece by piece.
type Counter struct {
	limits               Limits
	depth, values, items int
	// quoted: the next byte is within a string; escaped: it follows a backslash there.
	quoted, escaped bool
}

// Counter begins to count.
func (l Limits) Counter() *Counter { return &Counter{limits: l, values: 1} }

// Count counts the next piece. It fails when the document has more than the limits allow; its size is not looked at.
func (c *Counter) Count(piece []byte) error {
	for len(piece) > 0 {
		if c.quoted {
			piece = c.string(piece)
			continue
		}
		next := bytes.IndexAny(piece, structure) // Most of a long answer is something else.
		if next < 0 {
			return nil
		}
		c.structure(piece[next])
		if err := c.check(); err != nil {
			return err
		}
		piece = piece[next+1:]
	}
	return nil
}

// structure has the bytes that begin, end or part values.
const structure = `"{[}],`

func (c *Counter) structure(b byte) {
	switch b {
	case '"':
		c.quoted = true
	case '{', '[':
		c.depth++
		c.values++
	case '}', ']':
		c.depth--
	case ',':
		c.values++
		if c.depth == itemsDepth {
			c.items++
		}
	}
}

// string passes a string, or what the piece has of it, and returns what follows.
func (c *Counter) string(piece []byte) []byte {
	if c.escaped {
		c.escaped = false
		return piece[1:]
	}
	end := bytes.IndexByte(piece, '"')
	before := piece
	if end >= 0 {
		before = piece[:end]
	}
	if escape := bytes.IndexByte(before, '\\'); escape >= 0 {
		c.escaped = true
		return piece[escape+1:]
	}
	if end < 0 {
		return nil
	}
	c.quoted = false
	return piece[end+1:]
}

// itemsDepth is where the items of a list in the outermost object are.
const itemsDepth = 2

func (c *Counter) check() error {
	if c.limits.Items > 0 && c.items >= c.limits.Items {
		return fmt.Errorf("it has more than %d items", c.limits.Items)
	}
	return c.limits.check(c.depth, c.values)
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
