// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// labelLength is how much of the hash is in the label that an InfraEnv selects: 160 bits, which nobody guesses who cannot read the Cluster.
const labelLength = 40

// nmstateSelector selects the NMStateConfigs that are made for an InfraEnv.
func nmstateSelector(cluster types.UID, infraEnv string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{bootstrapv1.NMStateInfraEnvLabel: newNMStateLabel(cluster, infraEnv)}}
}

// newNMStateLabel is the label's value for an InfraEnv that is to be made. assisted-service looks for NMStateConfigs in all namespaces:
// with the InfraEnv's name alone, Clusters of one name and content in two namespaces would get each other's networks into their images.
func newNMStateLabel(cluster types.UID, infraEnv string) string {
	sum := sha256.Sum256([]byte(string(cluster) + "/" + infraEnv))
	return hex.EncodeToString(sum[:])[:labelLength]
}

// nmstateLabel is the label's value of the NMStateConfigs of the config's InfraEnv. An InfraEnv that exists says itself what it selects:
// the first version used its name, and the Cluster's UID changes when the Cluster is restored from a backup.
func nmstateLabel(s *scope) string {
	if s.infraEnv != nil && s.infraEnv.Spec.NMStateConfigLabelSelector != nil {
		if value := s.infraEnv.Spec.NMStateConfigLabelSelector.MatchLabels[bootstrapv1.NMStateInfraEnvLabel]; value != "" {
			return value
		}
	}
	return newNMStateLabel(s.cluster.UID, s.infraEnvName)
}

// madeFor reports whether an NMStateConfig was made for the config's InfraEnv. One that is labelled for an earlier InfraEnv of the same
// name is taken over: its name is in the way.
func madeFor(s *scope, config *assisted.NMStateConfig) bool {
	label, host := config.Labels[bootstrapv1.NMStateInfraEnvLabel], config.Annotations[bootstrapv1.NMStateHostAnnotation]
	return label == nmstateLabel(s) || label != "" && config.Name == nmstateName(s.infraEnvName, host)
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

// imageMark identifies an InfraEnv's image without telling its URL, which is a credential; "" when there is none, or when its URL stays the
// same whatever is in it.
func imageMark(infraEnv *assisted.InfraEnv) string {
	if infraEnv == nil || !rotates(infraEnv.Status.ISODownloadURL) {
		return ""
	}
	sum := sha256.Sum256([]byte(infraEnv.Status.ISODownloadURL + " " + infraEnv.Status.CreatedTime))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// rotates reports whether an image gets another URL when its content changes: assisted-service makes a new token then. Without
// authentication (AUTH_TYPE=none) there is no token, and neither the URL nor createdTime ever changes.
func rotates(url string) bool {
	return strings.Contains(url, "/byapikey/") || strings.Contains(url, "/bytoken/") || strings.Contains(url, "api_key=") ||
		strings.Contains(url, "image_token=")
}

// imageCooldown is how long assisted-service is given to put an NMStateConfig into an image whose URL tells nothing of it. It is what the
// service itself waits before it uses the image of an InfraEnv that changed.
const imageCooldown = time.Minute

// newerThanImage names an NMStateConfig that may not be in the InfraEnv's image yet; "" when there is none. after is when to look again, 0
// when an event of the InfraEnv tells.
func newerThanImage(s *scope) (name string, after time.Duration) {
	if s.infraEnv == nil {
		return "", 0
	}
	mark := imageMark(s.infraEnv)
	for i := range s.nmstates {
		noted := s.nmstates[i].Annotations[bootstrapv1.NMStateImageAnnotation]
		if noted != "" && noted == mark {
			return s.nmstates[i].Name, 0
		}
		if written, err := time.Parse(time.RFC3339, noted); err == nil && written.Add(imageCooldown).After(s.now) {
			return s.nmstates[i].Name, written.Add(imageCooldown).Sub(s.now)
		}
	}
	return "", 0
}

// noteImage notes the image that the NMStateConfig is not in or, when the image has no mark, the time at which it was written.
func noteImage(s *scope, config *assisted.NMStateConfig) {
	delete(config.Annotations, bootstrapv1.NMStateImageAnnotation)
	if s.infraEnv == nil || s.infraEnv.Status.ISODownloadURL == "" {
		return
	}
	note := cmp.Or(imageMark(s.infraEnv), s.now.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.NMStateImageAnnotation, note)
}

// infraEnvReference makes the InfraEnv the owner of an NMStateConfig.
func infraEnvReference(infraEnv *assisted.InfraEnv) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: assisted.GroupVersion.String(), Kind: "InfraEnv", Name: infraEnv.Name, UID: infraEnv.UID}
}

// nmstateLimits are those of a document in an NMStateConfig. In JSON it is larger than in the Secret that it is made from, which has limits
// of its own; whatever is larger than this was not made from one.
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
