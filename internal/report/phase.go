// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

// Phase is a part of a Machine's way to Ready. It ends when the Machine passes the milestone of the same name.
type Phase string

// The phases in their usual order. A day-2 host is recognised long before it is bound.
const (
	// Media ends when the Machine's bootstrap data is published.
	Media Phase = "media"
	// HostChosen ends when a BareMetalHost is associated with the Machine.
	HostChosen Phase = "host_chosen"
	// Booted ends when the host was booted for discovery.
	Booted Phase = "booted"
	// Recognised ends when an Agent is claimed for the Machine.
	Recognised Phase = "recognised"
	// Bound ends when the Agent is bound to the cluster.
	Bound Phase = "bound"
	// Installing ends when the installation of the host begins.
	Installing Phase = "installing"
	// Installed ends when the host runs the installed system.
	Installed Phase = "installed"
	// Node ends when the Machine has a Node.
	Node Phase = "node"
	// Ready ends when the Machine is Ready.
	Ready Phase = "ready"
)

// phases has every phase in its usual order.
var phases = []Phase{Media, HostChosen, Booted, Recognised, Bound, Installing, Installed, Node, Ready}

// Phases returns every phase in its usual order.
func Phases() []Phase { return slices.Clone(phases) }

// phaseText is what the page calls a phase, and what its end means.
var phaseText = map[Phase]struct{ label, meaning string }{
	Media:      {"boot media", "the discovery image or ignition is published"},
	HostChosen: {"host chosen", "Metal3 has chosen a BareMetalHost"},
	Booted:     {"booted", "the host was booted for discovery"},
	Recognised: {"recognised", "the host has registered and its Agent is claimed"},
	Bound:      {"bound", "the Agent is bound to the cluster"},
	Installing: {"installing", "the installation of the host has begun"},
	Installed:  {"installed", "the host runs the installed system"},
	Node:       {"node", "the Node has joined"},
	Ready:      {"ready", "the Machine is Ready"},
}

func (p Phase) label() string { return phaseText[p].label }

// number counts the phases from 1: the page shows it beside the colour, which not everybody can tell from others.
func (p Phase) number() int { return slices.Index(phases, p) + 1 }
