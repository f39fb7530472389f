// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// nmstateSelector selects the NMStateConfigs that are made for an InfraEnv.
func nmstateSelector(infraEnv string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{bootstrapv1.NMStateInfraEnvLabel: infraEnv}}
}

// nmstateName is the name of the NMStateConfig of a host for an InfraEnv.
func nmstateName(infraEnv, host string) string {
	name := infraEnv + "-" + host
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(host))
	return infraEnv + "-" + hex.EncodeToString(sum[:])
}

// imageMark identifies an InfraEnv's image without telling its URL, which is a credential; "" when there is none.
func imageMark(infraEnv *assisted.InfraEnv) string {
	if infraEnv == nil || infraEnv.Status.ISODownloadURL == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(infraEnv.Status.ISODownloadURL + " " + infraEnv.Status.CreatedTime))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// infraEnvReference makes the InfraEnv the owner of an NMStateConfig.
func infraEnvReference(infraEnv *assisted.InfraEnv) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: assisted.GroupVersion.String(), Kind: "InfraEnv", Name: infraEnv.Name, UID: infraEnv.UID}
}

// nmstateLimits are those of a document in an NMStateConfig. In JSON it is larger than in the Secret that it is made from, which has limits of
// its own; whatever is larger than this was not made from one.
var nmstateLimits = untrusted.Limits{Bytes: 512 << 10, Values: 10_000}

// sameJSON reports whether two documents mean the same.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if nmstateLimits.JSON(a) != nil || nmstateLimits.JSON(b) != nil {
		return false
	}
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
