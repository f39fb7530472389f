// SPDX-License-Identifier: Apache-2.0

// Package aiv1 holds the Go shapes of the agent-install.openshift.io/v1beta1 kinds, as far as the assisted-service
// simulator reads or writes them.
//
// The package of assisted-service that defines them does not compile beside the controller-runtime of this module, and
// the consumer-side types of our own providers are no substitute: a simulator that shared them would share their mistakes.
//
// +kubebuilder:object:generate=true
// +groupName=agent-install.openshift.io
package aiv1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of InfraEnv, Agent and NMStateConfig.
var GroupVersion = schema.GroupVersion{Group: "agent-install.openshift.io", Version: "v1beta1"}

// AddToScheme registers the kinds of this package in a scheme. It never fails for a scheme of its own.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&InfraEnv{}, &InfraEnvList{}, &Agent{}, &AgentList{}, &NMStateConfig{}, &NMStateConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
