// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// The size of a real host's Agent, some 20 KB: what a server of two sockets with two dual-port cards and its service network reports.
const (
	realInterfaces  = 8
	realDisks       = 10
	realValidations = 60
)

// enlarge gives an Agent the interfaces, disks and checks of a real host. Addresses of the further interfaces follow from that of the
// first, so that they are those of no other host either.
func enlarge(agent *unstructured.Unstructured) error {
	inventory, _, err := unstructured.NestedMap(agent.Object, "status", "inventory")
	if err != nil {
		return fmt.Errorf("read the inventory of Agent %s: %w", agent.GetName(), err)
	}
	interfaces, disks := list(inventory["interfaces"]), list(inventory["disks"])
	if len(interfaces) == 0 || len(disks) == 0 {
		return fmt.Errorf("Agent %s has no inventory", agent.GetName())
	}
	for i := len(interfaces); i < realInterfaces; i++ {
		interfaces = append(interfaces, furtherInterface(interfaces[0], i))
	}
	for i := len(disks); i < realDisks; i++ {
		disks = append(disks, furtherDisk(disks[0], i))
	}
	inventory["interfaces"], inventory["disks"] = interfaces, disks
	text, err := json.Marshal(inventory)
	if err != nil {
		return fmt.Errorf("encode the inventory of Agent %s: %w", agent.GetName(), err)
	}
	annotations := agent.GetAnnotations()
	annotations[assisted.InventoryAnnotation] = string(text)
	agent.SetAnnotations(annotations)
	if err := unstructured.SetNestedMap(agent.Object, inventory, "status", "inventory"); err != nil {
		return fmt.Errorf("write the inventory of Agent %s: %w", agent.GetName(), err)
	}
	return unstructured.SetNestedMap(agent.Object, checks(), "status", "validationsInfo")
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

// furtherInterface has another vendor's prefix in the address: what follows it is the host's.
func furtherInterface(first any, i int) any {
	card := maps.Clone(first.(map[string]any))
	address, _ := card["macAddress"].(string)
	card["name"] = fmt.Sprintf("ens%df%d", i/2, i%2)
	card["macAddress"] = fmt.Sprintf("52:54:%02x%s", i, strings.TrimPrefix(address, bootMACPrefix[:len(bootMACPrefix)-1]))
	card["ipV4Addresses"], card["ipV6Addresses"] = []any{}, []any{}
	return card
}

func furtherDisk(first any, i int) any {
	disk := maps.Clone(first.(map[string]any))
	name := fmt.Sprintf("nvme%dn1", i)
	id, _ := disk["id"].(string)
	serial, _ := disk["serial"].(string)
	disk["name"], disk["path"], disk["driveType"] = name, "/dev/"+name, "SSD"
	disk["id"], disk["byID"] = id+"-"+name, id+"-"+name
	disk["byPath"] = fmt.Sprintf("/dev/disk/by-path/pci-0000:%02x:00.0-nvme-1", i)
	disk["serial"], disk["model"], disk["vendor"] = serial+"-"+name, "ACME Enterprise NVMe 3.84TB", "ACME"
	return disk
}

// checks are those that assisted-service makes of a host, all passed.
func checks() map[string]any {
	groups := []string{"hardware", "network", "operators"}
	out := map[string]any{}
	for i := range realValidations {
		group := groups[i%len(groups)]
		out[group] = append(list(out[group]), map[string]any{
			"id": fmt.Sprintf("%s-requirement-%02d-satisfied", group, i), "status": "success",
			"message": fmt.Sprintf("The host meets requirement %02d of the %s that the release and its operators have", i, group),
		})
	}
	return out
}
