// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// maxAuditLine is the longest line of an audit log, 16 MiB; an event of level Metadata has some kilobytes.
const maxAuditLine = 16 << 20

// housekeeping are resources whose writes say nothing about reconciling: leader election, and the authentication and
// authorization of scrapes.
var housekeeping = []string{"leases", "tokenreviews", "subjectaccessreviews"}

const eventsResource = "events"

// reads are the verbs that change nothing.
var reads = []string{"get", "list", "watch"}

// Write is one kind of write of one user in an audit log, how often it happened, and how often of these the API server has refused it.
type Write struct {
	Verb, Resource string
	Count, Refused int
}

// Name is the verb and the resource, as "patch machines/status".
func (w Write) Name() string { return w.Verb + " " + w.Resource }

// Writes counts the writes of a user in the apiserver's audit log (localcontrolplane.ControlPlane.AuditLog), most
// frequent first. Left out are housekeeping (Leases, TokenReviews, SubjectAccessReviews), the events of leader election, which no cluster
// causes, and dry runs, which write nothing.
func Writes(auditLog, user string) ([]Write, error) {
	return writes(auditLog, user, func(*auditv1.Event) bool { return true })
}

// WritesFor counts the writes of a user that concern a namespace: its objects, and those without a namespace whose names begin with that of
// the namespace and a dot.
func WritesFor(auditLog, user, namespace string) ([]Write, error) {
	return writes(auditLog, user, func(event *auditv1.Event) bool {
		ref := event.ObjectRef
		return ref.Namespace == namespace || ref.Namespace == "" && strings.HasPrefix(ref.Name, namespace+".")
	})
}

func writes(auditLog, user string, wanted func(*auditv1.Event) bool) ([]Write, error) {
	counts := map[Write]Write{}
	// The log of a world with many clusters has a hundred thousand events, most of them of others.
	mentions := func(line []byte) bool { return bytes.Contains(line, []byte(user)) }
	err := readAudit(auditLog, 0, mentions, func(event *auditv1.Event) {
		if event.User.Username != user || event.ObjectRef == nil || IsRead(event.Verb) || IsHousekeeping(event.ObjectRef.Resource) ||
			ofElection(event) || strings.Contains(event.RequestURI, "dryRun=") || !wanted(event) {
			return
		}
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		kind := Write{Verb: event.Verb, Resource: resource}
		write := counts[kind]
		write.Count++
		if event.ResponseStatus != nil && event.ResponseStatus.Code >= http.StatusBadRequest {
			write.Refused++
		}
		counts[kind] = write
	})
	if err != nil {
		return nil, err
	}
	out := make([]Write, 0, len(counts))
	for kind, write := range counts {
		write.Verb, write.Resource = kind.Verb, kind.Resource
		out = append(out, write)
	}
	slices.SortFunc(out, func(a, b Write) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	})
	return out, nil
}

// ReadAudit calls visit for every complete event of an audit log, which may still be written to.
func ReadAudit(path string, visit func(*auditv1.Event)) error { return ReadAuditFrom(path, 0, visit) }

// ReadAuditFrom does the same for what is behind an offset, at which a line begins.
func ReadAuditFrom(path string, offset int64, visit func(*auditv1.Event)) error {
	return readAudit(path, offset, func([]byte) bool { return true }, visit)
}

// readAudit decodes the lines that are wanted.
func readAudit(path string, offset int64, wanted func(line []byte) bool, visit func(*auditv1.Event)) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return fmt.Errorf("cannot read the audit log: %w", err)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		event := &auditv1.Event{}
		if wanted(lines.Bytes()) && json.Unmarshal(lines.Bytes(), event) == nil {
			visit(event)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read the audit log: %w", err)
	}
	return nil
}

// Refused is how many of the writes the API server has refused.
func Refused(writes []Write) int {
	refused := 0
	for _, write := range writes {
		refused += write.Refused
	}
	return refused
}

// IsHousekeeping reports whether writes of a resource say nothing about reconciling.
func IsHousekeeping(resource string) bool { return slices.Contains(housekeeping, resource) }

// ofElection reports whether somebody records an event of leader election: those are the only ones in a manager's own namespace.
func ofElection(event *auditv1.Event) bool {
	return event.ObjectRef.Resource == eventsResource &&
		strings.HasPrefix(event.User.Username, "system:serviceaccount:"+event.ObjectRef.Namespace+":")
}

// IsRead reports whether a verb changes nothing.
func IsRead(verb string) bool { return slices.Contains(reads, verb) }

// Sum is the number of writes, and how many of them are no events.
func Sum(writes []Write) (all, withoutEvents int) {
	for _, write := range writes {
		all += write.Count
		if write.Resource != eventsResource {
			withoutEvents += write.Count
		}
	}
	return all, withoutEvents
}

// managerWrites are the writes of a manager.
type managerWrites struct {
	name   string
	writes []Write
}

// managersWrites are those of both managers so far.
func (w *World) managersWrites() ([]managerWrites, error) {
	var of []managerWrites
	for _, manager := range []struct{ name, user string }{{"bootstrap", w.Bootstrap.User}, {"control plane", w.ControlPlane.User}} {
		writes, err := Writes(w.Management.AuditLog(), manager.user)
		if err != nil {
			return nil, err
		}
		of = append(of, managerWrites{manager.name, writes})
	}
	return of, nil
}

// writeAudit writes a table of what both managers wrote.
func writeAudit(out io.Writer, managers []managerWrites, machines int) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MANAGER\tWRITES\tPER MACHINE\tWITHOUT EVENTS\tPER MACHINE\tOF WHICH")
	row := func(name string, all, withoutEvents int, parts string) {
		per := float64(max(machines, 1))
		fmt.Fprintf(table, "%s\t%d\t%.1f\t%d\t%.1f\t%s\n", name, all, float64(all)/per, withoutEvents, float64(withoutEvents)/per, parts)
	}
	sum, sumWithoutEvents := 0, 0
	for _, manager := range managers {
		parts := make([]string, 0, len(manager.writes))
		for _, write := range manager.writes {
			parts = append(parts, fmt.Sprintf("%d %s", write.Count, write.Name()))
		}
		all, withoutEvents := Sum(manager.writes)
		row(manager.name, all, withoutEvents, strings.Join(parts, ", "))
		sum, sumWithoutEvents = sum+all, sumWithoutEvents+withoutEvents
	}
	row("both", sum, sumWithoutEvents, "")
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot write the API writes: %w", err)
	}
	return nil
}
