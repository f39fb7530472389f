// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/nmstate"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// networkRetry is how often a Secret is looked for that does not exist or cannot be used, and how long a Secret that was read is not read
// again. Nobody watches Secrets: who may watch one may read every Secret of the management cluster.
const networkRetry = time.Minute

// maxHostProblems bounds how many hosts a message names.
const maxHostProblems = 3

// hostNetwork is a host that the Metal3Machine may get, and the network data that it names.
type hostNetwork struct {
	host *bmov1alpha1.BareMetalHost
	// secret is the name of the Secret; empty when the host names one that cannot be used, as problem says.
	secret  string
	problem error
	// data is the Secret's; nil when it was not read, or does not exist.
	data map[string][]byte
	read bool
}

// networkPlan is what a pass does about the NMStateConfigs of the config's InfraEnv, in this order.
type networkPlan struct {
	// remove are those to delete: their hosts are gone, or have no network data any more.
	remove []assisted.NMStateConfig
	// write are those to make or to change.
	write []assisted.NMStateConfig
	// adopt are those to give to the InfraEnv, so that they go with it.
	adopt []assisted.NMStateConfig
}

func (p networkPlan) empty() bool { return len(p.remove)+len(p.write) == 0 }

// wantsNetworks reports whether the config asks for NMStateConfigs and its Machine has given no host its image yet. Afterwards nothing is
// written: the medium that the host boots is never touched (DESIGN D4).
func wantsNetworks(s *scope) bool {
	return s.config.Spec.StaticNetworking.Source == bootstrapv1.StaticNetworkingBareMetalHosts && s.config.DeletionTimestamp.IsZero() &&
		s.machine != nil && s.machine.DeletionTimestamp.IsZero() &&
		(s.infraMachine == nil || !metal3.Taken(s.infraMachine, s.hosts))
}

// decideNetworks makes NMStateConfigs of the network data of every host that the Machine may get, before there is a medium:
// assisted-service puts them into the image, and nobody knows which host will be chosen (DESIGN D4). wait is true while no medium may be
// handed out.
func decideNetworks(s *scope, d *decision) (_ fact.Fact, wait bool) {
	if !wantsNetworks(s) {
		return fact.Fact{}, false
	}
	switch {
	case s.infraMachine == nil:
		return fact.Waiting(bootstrapv1.WaitingForInfraMachineReason, "%s %s does not exist: its hosts' network data cannot be known",
			s.machine.Spec.InfrastructureRef.Kind, s.machine.Spec.InfrastructureRef.Name), true
	case s.networksProblem != nil:
		return fact.Waiting(
			bootstrapv1.NetworkDataInvalidReason, "the hosts for %s %s cannot be known: %v", s.infraMachine.GetKind(), s.infraMachine.GetName(),
			s.networksProblem,
		), true
	}
	wanted, problem := wantedNetworks(s)
	if problem.Reason != "" {
		d.retryAfter = networkRetry
		if s.infraEnv != nil {
			// A medium of the InfraEnv may be out, and Metal3 may take any other host any moment: it boots without a network else.
			d.networks = planNetworks(s, wanted)
		}
		return problem, true
	}
	d.networks = planNetworks(s, wanted)
	if !d.networks.empty() {
		return fact.Waiting(
			bootstrapv1.NetworkDataPendingReason, "NMStateConfigs of InfraEnv %s are being written", s.infraEnvName,
		), s.infraEnv != nil
	}
	if name, after := newerThanImage(s); name != "" {
		d.retryAfter = after
		return fact.Waiting(
			bootstrapv1.NetworkDataPendingReason, "assisted-service has not put NMStateConfig %s into the image of InfraEnv %s yet", name,
			s.infraEnvName,
		), true
	}
	return fact.Fact{}, false
}

// wantedNetworks returns the NMStateConfigs of the hosts whose network data can be used, and what is wrong with a host that may be chosen.
// What is wrong with others is nothing to wait for.
func wantedNetworks(s *scope) (wanted []assisted.NMStateConfig, _ fact.Fact) {
	var missing, invalid []string
	for _, n := range s.networks {
		config, err := n.config(s)
		switch {
		case err == nil && config != nil:
			wanted = append(wanted, *config)
		case err == nil || !mayGet(s, n.host):
		case n.read && n.data == nil:
			missing = append(missing, err.Error())
		default:
			invalid = append(invalid, err.Error())
		}
	}
	sharing, problems := sharedDevices(s, wanted)
	wanted = slices.DeleteFunc(wanted, func(c assisted.NMStateConfig) bool {
		return sharing[c.Annotations[bootstrapv1.NMStateHostAnnotation]]
	})
	invalid = append(invalid, problems...)
	switch {
	case len(missing) > 0:
		return wanted, fact.Waiting(bootstrapv1.NetworkDataMissingReason, "%s", firstOf(missing))
	case len(invalid) > 0:
		return wanted, fact.Waiting(bootstrapv1.NetworkDataInvalidReason, "%s", firstOf(invalid))
	}
	return wanted, fact.Fact{}
}

func firstOf(problems []string) string {
	if more := len(problems) - maxHostProblems; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(problems[:maxHostProblems], "; "), more)
	}
	return strings.Join(problems, "; ")
}

// config is the NMStateConfig of the host; nil when its Secret was not read, because what exists is good enough.
func (n *hostNetwork) config(s *scope) (*assisted.NMStateConfig, error) {
	switch {
	case n.problem != nil:
		return nil, n.problem
	case !n.read:
		return nil, nil
	case n.data == nil:
		return nil, fmt.Errorf("network data of BareMetalHost %s: Secret %s does not exist: create it", n.host.Name, n.secret)
	}
	document, err := nmstate.Parse(n.data)
	if err != nil {
		return nil, fmt.Errorf("network data of BareMetalHost %s: Secret %s: %w", n.host.Name, n.secret, err)
	}
	devices, err := document.Devices(metal3.NICs(n.host), metal3.BootMAC(n.host))
	if err != nil {
		return nil, fmt.Errorf("network data of BareMetalHost %s: Secret %s: %w", n.host.Name, n.secret, err)
	}
	raw, err := document.JSON()
	if err != nil {
		return nil, fmt.Errorf("network data of BareMetalHost %s: Secret %s: %w", n.host.Name, n.secret, err)
	}
	config := &assisted.NMStateConfig{Spec: assisted.NMStateConfigSpec{Interfaces: devices, Config: apiextensionsv1.JSON{Raw: raw}}}
	config.Namespace, config.Name = s.config.Namespace, nmstateName(s.infraEnvName, n.host.Name)
	config.Labels = map[string]string{bootstrapv1.NMStateInfraEnvLabel: nmstateLabel(s)}
	config.Annotations = map[string]string{bootstrapv1.NMStateHostAnnotation: n.host.Name}
	return config, nil
}

// sharedDevices returns the hosts that have a device in common, by name, and says so of each pair: assisted-service could not tell them
// apart. Other templates of the same content have hosts in the same InfraEnv.
func sharedDevices(s *scope, wanted []assisted.NMStateConfig) (sharing map[string]bool, problems []string) {
	configs := slices.Clone(wanted)
	for _, existing := range s.nmstates {
		known := slices.ContainsFunc(wanted, func(c assisted.NMStateConfig) bool { return c.Name == existing.Name })
		if !known && hasNetworkData(s, existing.Annotations[bootstrapv1.NMStateHostAnnotation]) {
			configs = append(configs, existing)
		}
	}
	owners := map[string]string{}
	sharing = map[string]bool{}
	for _, config := range configs {
		host := config.Annotations[bootstrapv1.NMStateHostAnnotation]
		for _, device := range config.Spec.Interfaces {
			if other, taken := owners[device.MACAddress]; taken && other != host {
				sharing[host], sharing[other] = true, true
				problems = append(
					problems,
					fmt.Sprintf(
						"the network data of BareMetalHosts %s and %s is for one MAC address, %s: correct one of them", other, host, device.MACAddress,
					),
				)
			}
			owners[device.MACAddress] = host
		}
	}
	return sharing, problems
}

// planNetworks compares what is wanted with what exists. The network of a host that is taken is not changed while it may be booting from
// it.
func planNetworks(s *scope, wanted []assisted.NMStateConfig) networkPlan {
	plan := networkPlan{}
	for _, config := range wanted {
		at := slices.IndexFunc(s.nmstates, func(c assisted.NMStateConfig) bool { return c.Name == config.Name })
		switch {
		case at < 0:
			plan.write = append(plan.write, config)
		case !sameNetwork(&s.nmstates[at], &config) && hostFree(s, config.Annotations[bootstrapv1.NMStateHostAnnotation]):
			changed := s.nmstates[at].DeepCopy()
			changed.Spec = config.Spec
			metav1.SetMetaDataLabel(&changed.ObjectMeta, bootstrapv1.NMStateInfraEnvLabel, nmstateLabel(s))
			plan.write = append(plan.write, *changed)
		}
	}
	for i := range s.nmstates {
		existing := &s.nmstates[i]
		switch {
		case !existing.DeletionTimestamp.IsZero():
		case !hasNetworkData(s, existing.Annotations[bootstrapv1.NMStateHostAnnotation]):
			plan.remove = append(plan.remove, *existing)
		case s.infraEnv != nil && !kube.OwnedBy(existing, s.infraEnv):
			plan.adopt = append(plan.adopt, *existing)
		}
	}
	return plan
}

func hostNamed(s *scope, name string) *bmov1alpha1.BareMetalHost {
	at := slices.IndexFunc(s.hosts, func(h bmov1alpha1.BareMetalHost) bool { return h.Name == name })
	if at < 0 {
		return nil
	}
	return &s.hosts[at]
}

func hostFree(s *scope, name string) bool {
	host := hostNamed(s, name)
	return host != nil && mayGet(s, host)
}

// mayGet reports whether the Machine may still get the host: nobody has it, or a user has pinned it for the Machine. It is asked while
// wantsNetworks, when a host that refers to the infrastructure machine has no image yet.
func mayGet(s *scope, host *bmov1alpha1.BareMetalHost) bool {
	return metal3.Free(host) || metal3.Consumes(host, s.infraMachine)
}

// hasNetworkData reports whether a host exists and names network data, whether or not this Machine may get it: Machines share the InfraEnv.
func hasNetworkData(s *scope, name string) bool {
	host := hostNamed(s, name)
	if host == nil {
		return false
	}
	secret, err := metal3.NetworkDataSecret(host)
	return secret != "" || err != nil
}

// sameNetwork compares contents and what the InfraEnv selects: the API server may write the same document in another way.
func sameNetwork(a, b *assisted.NMStateConfig) bool {
	return a.Labels[bootstrapv1.NMStateInfraEnvLabel] == b.Labels[bootstrapv1.NMStateInfraEnvLabel] &&
		equality.Semantic.DeepEqual(a.Spec.Interfaces, b.Spec.Interfaces) && sameJSON(a.Spec.Config.Raw, b.Spec.Config.Raw)
}
