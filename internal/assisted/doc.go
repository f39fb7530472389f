// SPDX-License-Identifier: Apache-2.0

// Package assisted is what both managers know of assisted-service and hive: consumer-side types of kinds whose own package does not
// compile beside Cluster API (DESIGN D17), the names that the service uses, the states of an Agent and the phases of an installation.
// It reads objects and answers questions; it writes nothing.
// +kubebuilder:object:generate=true
// +groupName=agent-install.openshift.io
package assisted

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of InfraEnv, Agent, NMStateConfig and AgentServiceConfig.
var GroupVersion = schema.GroupVersion{Group: "agent-install.openshift.io", Version: "v1beta1"}

// AddToScheme registers the kinds of GroupVersion, and the kinds of hive and its extension that the managers use.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &InfraEnv{}, &InfraEnvList{}, &Agent{}, &AgentList{}, &NMStateConfig{}, &NMStateConfigList{},
		&AgentServiceConfig{}, &AgentServiceConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	s.AddKnownTypes(hivev1.SchemeGroupVersion,
		&hivev1.ClusterDeployment{}, &hivev1.ClusterDeploymentList{}, &hivev1.ClusterImageSet{}, &hivev1.ClusterImageSetList{})
	metav1.AddToGroupVersion(s, hivev1.SchemeGroupVersion)
	return hiveext.AddToScheme(s)
}
