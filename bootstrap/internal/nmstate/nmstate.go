// SPDX-License-Identifier: Apache-2.0

// Package nmstate reads the network data of BareMetalHosts and finds the devices that it is about. It is pure. Its errors never quote the
// data, which comes from Secrets.
package nmstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// limits of a document. Those of hosts with dozens of interfaces have some KiB.
var limits = untrusted.Limits{Bytes: 64 << 10, Values: 10_000}

// keys of a Secret that may hold the document: that of Metal3's images made of CoreOS, and that of Metal3 for the installed system.
var keys = []string{"nmstate", "networkData"}

var (
	// errNoKey: the Secret holds no network data.
	errNoKey = errors.New("it has neither the key nmstate nor networkData")
	// errNotNMState: the data is something else.
	errNotNMState = errors.New("it is no nmstate document: a YAML object with a list of interfaces")
	// errOpenStack: the data is for cloud-init.
	errOpenStack = errors.New("it is in the form of OpenStack's network_data.json, which CoreOS cannot read: write it as an nmstate document")
)

// Document is an nmstate document.
type Document map[string]any

// Bound returns what Parse reads of a Secret's data, with one text in the place of all documents that are too long, which is refused for
// the same reason. A Secret may have a mebibyte, and a tenant thousands of them.
func Bound(data map[string][]byte) map[string][]byte {
	bound := map[string][]byte{}
	for _, key := range keys {
		raw, found := data[key]
		if found && limits.Size(raw) != nil {
			raw = tooLong
		}
		if found {
			bound[key] = raw
		}
	}
	return bound
}

var tooLong = make([]byte, limits.Bytes+1)

// Parse returns the document of a Secret's data.
func Parse(data map[string][]byte) (Document, error) {
	for _, key := range keys {
		raw, found := data[key]
		if !found {
			continue
		}
		err := limits.YAML(raw)
		if errors.Is(err, untrusted.ErrSyntax) {
			err = errNotNMState
		}
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		document := Document{}
		if err := yaml.Unmarshal(raw, &document); err != nil {
			return nil, fmt.Errorf("key %s: %w", key, errNotNMState)
		}
		if _, found := document["links"]; found {
			return nil, fmt.Errorf("key %s: %w", key, errOpenStack)
		}
		if len(document.interfaces()) == 0 {
			return nil, fmt.Errorf("key %s: %w", key, errNotNMState)
		}
		withoutNulls(document)
		return document, nil
	}
	return nil, errNoKey
}

// withoutNulls drops what is null, which means the same to nmstate and cannot be written by a merge patch.
func withoutNulls(value any) {
	switch v := value.(type) {
	case Document:
		withoutNulls(map[string]any(v))
	case map[string]any:
		for key, item := range v {
			if item == nil {
				delete(v, key)
				continue
			}
			withoutNulls(item)
		}
	case []any:
		for _, item := range v {
			withoutNulls(item)
		}
	}
}

// JSON returns the document as JSON, with its keys in order.
func (d Document) JSON() ([]byte, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write nmstate document: %w", errNotNMState)
	}
	return raw, nil
}

// interfaces are the interfaces that are to exist.
func (d Document) interfaces() []map[string]any {
	items, _ := d["interfaces"].([]any)
	var interfaces []map[string]any
	for _, item := range items {
		if i, ok := item.(map[string]any); ok && text(i, "name") != "" && text(i, "state") != "absent" {
			interfaces = append(interfaces, i)
		}
	}
	return interfaces
}

// Devices returns the hardware addresses of the physical devices that the document names, in the order in which it does. assisted-service
// refuses a document with a device that it has no address for. An address is that of the document or else, by the device's name, one of
// nics; a document about a single device may also be about the one that the host boots from.
func (d Document) Devices(nics map[string]string, bootMAC string) ([]assisted.NMStateInterface, error) {
	names, addresses := d.devices()
	if len(names) == 0 {
		return nil, errors.New("it names no physical device")
	}
	devices := make([]assisted.NMStateInterface, 0, len(names))
	var unknown []string
	for _, name := range names {
		mac := addresses[name]
		if mac == "" {
			mac = nics[name]
		}
		if mac == "" && len(names) == 1 {
			mac = bootMAC
		}
		if mac == "" {
			unknown = append(unknown, name)
			continue
		}
		address, err := net.ParseMAC(mac)
		if err != nil || len(address) != 6 {
			return nil, fmt.Errorf("device %s has no MAC address of six bytes", name)
		}
		devices = append(devices, assisted.NMStateInterface{Name: name, MACAddress: address.String()})
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf(
			"the MAC address of %s is not known: give it as mac-address, or by the name that inspection found", strings.Join(unknown, ", "),
		)
	}
	return devices, nil
}

// devices returns the names of the physical devices: interfaces of type ethernet, and whatever others are made of that is no interface of
// the document itself; and the addresses that the document gives.
func (d Document) devices() (names []string, addresses map[string]string) {
	virtual := map[string]bool{}
	addresses = map[string]string{}
	for _, i := range d.interfaces() {
		virtual[text(i, "name")] = !ethernet(i)
		if ethernet(i) {
			addresses[text(i, "name")] = strings.ReplaceAll(strings.ToLower(text(i, "mac-address")), "-", ":")
		}
	}
	for _, i := range d.interfaces() {
		used := lowerDevices(i)
		if ethernet(i) {
			used = []string{text(i, "name")}
		}
		for _, name := range used {
			if !virtual[name] && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, addresses
}

func ethernet(i map[string]any) bool {
	return slices.Contains([]string{"", "ethernet"}, text(i, "type"))
}

// lowerDevices are the names of what a virtual interface is made of.
func lowerDevices(i map[string]any) []string {
	var names []string
	for _, part := range []string{"vlan", "vxlan", "mac-vlan", "mac-vtap", "ipvlan"} {
		names = append(names, text(object(i, part), "base-iface"))
	}
	names = append(names, ports(object(i, "link-aggregation"))...)
	names = append(names, ports(object(i, "vrf"))...)
	bridge := object(i, "bridge")
	names = append(names, ports(bridge)...)
	items, _ := bridge["port"].([]any)
	for _, item := range items {
		if port, ok := item.(map[string]any); ok {
			names = append(names, ports(object(port, "link-aggregation"))...)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name == text(i, "name") })
}

// ports are the names in a list of names, or of objects with a name, under the key port or its older name.
func ports(of map[string]any) []string {
	var names []string
	for _, key := range []string{"port", "slaves"} {
		items, _ := of[key].([]any)
		for _, item := range items {
			names = append(names, portName(item))
		}
	}
	return names
}

// portName is the name of a port; "" for one that has ports itself.
func portName(item any) string {
	if name, ok := item.(string); ok {
		return name
	}
	port, _ := item.(map[string]any)
	if object(port, "link-aggregation") != nil {
		return ""
	}
	return text(port, "name")
}

func text(o map[string]any, key string) string {
	value, _ := o[key].(string)
	return value
}

func object(o map[string]any, key string) map[string]any {
	value, _ := o[key].(map[string]any)
	return value
}
