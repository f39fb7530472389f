// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	featuretesting "k8s.io/component-base/featuregate/testing"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/feature"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// needed are the variables without which nothing is rendered.
var needed = map[string]string{"openshiftVersion": "4.20.0", "baseDomain": "example.com", "controlPlaneEndpointHost": "192.0.2.9"}

// instead are the variables whose places others take.
var instead = map[string]string{"releases": "openshiftVersion"}

// at is a field of a template's spec.
type at struct{ template, field string }

// fields are a value of every variable, and where it goes. What is empty is the value itself.
var fields = map[string]struct {
	value string
	want  map[at]string
}{
	"openshiftVersion": {"4.20.1", map[at]string{{controlPlane, "distributionVersion"}: ""}},
	"releases": {
		"[{version: v1.32.9, release: 4.19.9, channel: stable-4.19}, " +
			"{version: v1.33.4, release: 4.20.4, image: \"registry.example.com/release@sha256:ab\", channel: stable-4.20}]",
		map[at]string{
			{controlPlane, "upgrade"}:             "{channel: stable-4.20}",
			{controlPlane, "distributionVersion"}: "4.20.4", {controlPlane, "release"}: "{image: \"registry.example.com/release@sha256:ab\"}",
		},
	},
	"release":                  {"{image: registry.example.com/release:4.20.0}", map[at]string{{controlPlane, "release"}: ""}},
	"baseDomain":               {"example.org", map[at]string{{controlPlane, "install.baseDomain"}: ""}},
	"openshiftClusterName":     {"other", map[at]string{{controlPlane, "install.clusterName"}: ""}},
	"controlPlaneEndpointHost": {"192.0.2.8", map[at]string{{infraCluster, "controlPlaneEndpoint.host"}: ""}},
	"vips": {"{api: [192.0.2.10], ingress: [192.0.2.11]}", map[at]string{
		{controlPlane, "install.apiVIPs"}: "[192.0.2.10]", {controlPlane, "install.ingressVIPs"}: "[192.0.2.11]",
	}},
	"networking": {
		"{machineNetwork: [192.0.2.0/24], clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 24}], serviceNetwork: [172.30.0.0/16]}",
		map[at]string{
			{controlPlane, "install.networking"}: "{machineNetwork: [192.0.2.0/24], clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 24}], " +
				"serviceNetwork: [172.30.0.0/16], networkType: OVNKubernetes}",
		},
	},
	"pullSecret":                     {"pulls", map[at]string{{controlPlane, "install.pullSecretRef"}: "{name: pulls}"}},
	"workerWaitTimeoutSeconds":       {"0", map[at]string{{controlPlane, "install.workerWaitTimeoutSeconds"}: ""}},
	"hostRegistrationTimeoutSeconds": {"0", map[at]string{{controlPlane, "install.hostRegistrationTimeoutSeconds"}: ""}},
	"installRetries":                 {"2", map[at]string{{controlPlane, "install.retries"}: ""}},
	"holdInstallation":               {"true", map[at]string{{controlPlane, "install.holdInstallation"}: ""}},
	"platform":                       {`"None"`, map[at]string{{controlPlane, "install.platform"}: ""}},
	"external": {
		"{platformName: acme, cloudControllerManager: External}", map[at]string{{controlPlane, "install.external"}: ""},
	},
	"twoNode":                 {"Arbiter", map[at]string{{controlPlane, "install.twoNode"}: ""}},
	"loadBalancer":            {"UserManaged", map[at]string{{controlPlane, "install.loadBalancer"}: "{type: UserManaged}"}},
	"schedulableControlPlane": {"true", map[at]string{{controlPlane, "install.schedulableControlPlane"}: ""}},
	"manifests":               {"[{name: a}, {name: b}]", map[at]string{{controlPlane, "install.manifestsConfigMapRefs"}: ""}},
	"diskEncryption": {"{mode: Tang, roles: [Worker], tangServers: [{url: \"http://tang.example.com:7500\", thumbprint: abc}]}",
		map[at]string{{controlPlane, "install.diskEncryption"}: ""}},
	"capabilities": {"{baseline: None, additional: [NodeTuning]}", map[at]string{{controlPlane, "install.capabilities"}: ""}},
	"featureSet":   {"TechPreviewNoUpgrade", map[at]string{{controlPlane, "install.featureSet"}: ""}},
	"fips":         {"true", map[at]string{{controlPlane, "install.fips"}: ""}},
	"controlPlaneRollout": {
		"{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}", map[at]string{{controlPlane, "rollout"}: ""},
	},
	"controlPlaneRemediation": {"{maxRetry: 3}", map[at]string{{controlPlane, "remediation"}: ""}},
	"hyperthreading":          {"{arbiter: Enabled, worker: Disabled}", map[at]string{{controlPlane, "install.hyperthreading"}: ""}},
	"cpuPartitioning":         {"AllNodes", map[at]string{{controlPlane, "install.cpuPartitioning"}: ""}},
	"ignoredValidations": {
		"{cluster: [network-prefix-valid], host: [has-min-memory]}", map[at]string{{controlPlane, "install.ignoredValidations"}: ""},
	},
	"configOverrides": {"{publish: Internal, compute: [{name: worker}]}", map[at]string{{controlPlane, "install.configOverrides"}: ""}},
	"clusterProxy": {
		"{httpProxy: \"http://proxy.example.com:3128\", noProxy: [.example.com]}",
		map[at]string{{controlPlane, "install.proxy"}: ""},
	},
	"sshAuthorizedKey": {
		"ssh-ed25519 AAAA",
		map[at]string{
			{controlPlane, "install.sshAuthorizedKey"}: "", {controlPlane, "openshiftAssistedConfigSpec.sshAuthorizedKey"}: "",
			{worker, "sshAuthorizedKey"}: "",
		},
	},
	"mirrorRegistry": {
		"mirrors",
		map[at]string{
			{controlPlane, "install.mirrorRegistryRef"}:                     "{name: mirrors}",
			{controlPlane, "openshiftAssistedConfigSpec.mirrorRegistryRef"}: "{name: mirrors}",
			{worker, "mirrorRegistryRef"}:                                   "{name: mirrors}",
		},
	},
	"ntpSources": {"[ntp.example.com]", map[at]string{
		{controlPlane, "install.ntpSources"}: "", {controlPlane, "openshiftAssistedConfigSpec.ntpSources"}: "", {worker, "ntpSources"}: "",
	}},
	"cpuArchitecture":       {"aarch64", ofHosts("cpuArchitecture", "")},
	"proxy":                 {"{httpsProxy: \"http://proxy.example.com:3128\"}", ofHosts("proxy", "")},
	"additionalNTPSources":  {"[ntp.example.com]", ofHosts("additionalNTPSources", "")},
	"additionalTrustBundle": {"pem", ofHosts("additionalTrustBundle", "")},
	"nmStateConfigSelector": {"{matchLabels: {a: b}}", ofHosts("nmStateConfigSelector", "")},
	"staticNetworking":      {"BareMetalHosts", ofHosts("staticNetworking", "{source: BareMetalHosts}")},
	"discovery":             {"{kernelArguments: [console=ttyS0], ignition: '{}'}", ofHosts("discovery", "")},
	"installation": {
		"{kernelArguments: [a], deletedKernelArguments: [quiet], rootDeviceHints: {deviceName: /dev/sda, minSizeGigabytes: 100, rotational: " +
			"false}}",
		ofHosts("installation", ""),
	},
	"nodeName": {"BareMetalHost", ofHosts("nodeRegistration.name", "")},
	"boot":     {"{imageType: Full, osImageVersion: \"4.20\"}", ofHosts("boot", "{mode: LiveISO, imageType: Full, osImageVersion: \"4.20\"}")},
	"diskImage": {"{url: \"http://example.com/coreos.qcow2\", checksum: abc, checksumType: sha256, format: qcow2}", union(
		map[at]string{{controlPlaneMachine, "image"}: "", {workerMachine, "image"}: ""}, ofHosts("boot", "{mode: UserData}"))},
	"workerNodeLabels":         {"[{key: a, value: \"\"}]", map[at]string{{worker, "nodeRegistration.labels"}: ""}},
	"machineConfigPool":        {"infra", map[at]string{{worker, "nodeRegistration.machineConfigPool"}: ""}},
	"controlPlaneHostSelector": {"{matchLabels: {a: b}}", map[at]string{{controlPlaneMachine, "hostSelector"}: ""}},
	"workerHostSelector":       {"{matchLabels: {a: b}}", map[at]string{{workerMachine, "hostSelector"}: ""}},
}

// ofHosts is a field of all hosts' configs.
func ofHosts(field, value string) map[at]string {
	return map[at]string{{controlPlane, "openshiftAssistedConfigSpec." + field}: value, {worker, field}: value}
}

func union(a, b map[at]string) map[at]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// TestClassIsAccepted: Cluster API takes the class as it is.
func TestClassIsAccepted(t *testing.T) {
	featuretesting.SetFeatureGateDuringTest(t, feature.Gates, feature.ClusterTopology, true)
	_, err := (&admission.ClusterClass{}).ValidateCreate(t.Context(), class(t))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// TestClassVariables: every variable gets to the fields that it is for, and to no others, and what comes out has only fields that there
// are. The guide tells of it.
func TestClassVariables(t *testing.T) {
	g := NewWithT(t)
	root, err := localcontrolplane.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	guide, err := os.ReadFile(filepath.Join(root, "docs", "guides", "clusterclass.md"))
	g.Expect(err).NotTo(HaveOccurred())
	plain := render(t, needed)
	for _, variable := range class(t).Spec.Variables {
		t.Run(variable.Name, func(t *testing.T) {
			g := NewWithT(t)
			test, ok := fields[variable.Name]
			g.Expect(ok).To(BeTrue(), "say in fields what it is for")
			g.Expect(string(guide)).To(ContainSubstring("| `"+variable.Name+"` |"), "docs/guides/clusterclass.md")
			values := maps.Clone(needed)
			delete(values, instead[variable.Name])
			values[variable.Name] = test.value
			specs := render(t, values)
			checkTypes(t, specs)
			for where, want := range test.want {
				if want == "" {
					want = test.value
				}
				wanted, err := yaml.YAMLToJSON([]byte(want))
				g.Expect(err).NotTo(HaveOccurred())
				path := strings.Split(where.field, ".")
				found, _, err := unstructured.NestedFieldNoCopy(specs[where.template], path...)
				g.Expect(err).NotTo(HaveOccurred())
				data, err := json.Marshal(found)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(data).To(MatchJSON(wanted), "%s of %s", where.field, where.template)
				restore(g, specs[where.template], plain[where.template], path)
			}
			g.Expect(specs).To(Equal(plain), "without those fields")
		})
	}
}

// TestReleases: the release is looked up by the version that the control plane has at the step, and what cannot be looked up is no release.
func TestReleases(t *testing.T) {
	const both = "[{version: v1.33.4, release: 4.20.4}, " +
		"{version: v1.34.1+3b9f8b6, release: 4.21.3, image: \"example.com/release:4.21.3\", channel: stable-4.21}]"
	for name, tt := range map[string]struct {
		values           map[string]string
		version, release string
		image, channel   any
		err              string
	}{
		"before the step": {values: map[string]string{"releases": both}, version: "v1.33.4", release: "4.20.4"},
		"after the step": {
			values: map[string]string{"releases": both}, version: "v1.34.1+3b9f8b6", release: "4.21.3", image: "example.com/release:4.21.3",
			channel: "stable-4.21",
		},
		"one release, whatever the version": {values: map[string]string{"openshiftVersion": "4.20.1"}, version: "v1.34.1", release: "4.20.1"},
		"no such version": {
			values: map[string]string{"releases": both}, version: "v1.34.1", err: "variable releases has no release of version v1.34.1",
		},
		"a version twice": {
			values:  map[string]string{"releases": "[{version: v1.33.4, release: 4.20.4}, {version: v1.33.4, release: 4.20.5}]"},
			version: "v1.33.4", err: "variable releases has version v1.33.4 twice",
		},
		"neither": {version: "v1.33.4", err: "variable openshiftVersion or releases has to be set"},
		"both": {
			values: map[string]string{"releases": both, "openshiftVersion": "4.20.4"}, version: "v1.33.4", err: "remove these",
		},
		"an image for all versions": {
			values: map[string]string{"releases": both, "release": "{image: example.com/release}"}, version: "v1.33.4", err: "remove these",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			values := maps.Clone(needed)
			delete(values, "openshiftVersion")
			maps.Copy(values, tt.values)
			specs, err := renderAt(t, tt.version, values)
			if tt.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			checkTypes(t, specs)
			g.Expect(specs[controlPlane]).To(HaveKeyWithValue("distributionVersion", tt.release))
			checkField(g, specs[controlPlane], "release", "image", tt.image)
			checkField(g, specs[controlPlane], "upgrade", "channel", tt.channel)
		})
	}
}

// checkField checks that a spec has an object with this one field, and not the object without a value.
func checkField(g Gomega, spec map[string]any, object, field string, value any) {
	if value == nil {
		g.Expect(spec).NotTo(HaveKey(object))
		return
	}
	g.Expect(spec).To(HaveKeyWithValue(object, map[string]any{field: value}))
}

// TestWorkersAreNotReinstalled: a changed version has Cluster API replace no server (DESIGN D33).
func TestWorkersAreNotReinstalled(t *testing.T) {
	onDelete := clusterv1.OnDeleteMachineDeploymentStrategyType
	for _, deployment := range class(t).Spec.Workers.MachineDeployments {
		NewWithT(t).Expect(deployment.Rollout.Strategy.Type).To(Equal(onDelete), classFile)
	}
	for _, flavor := range flavors() {
		_, body := read(t, file(flavor))
		for _, text := range strings.Split(body, "\n---\n") {
			if !strings.Contains(text, "\nkind: MachineDeployment\n") {
				continue
			}
			// A variable is no number.
			text = strings.Split(variableWithDefault.ReplaceAllString(text, "$2"), "\n  template:\n")[0]
			text = strings.ReplaceAll(text, "${WORKER_MACHINE_COUNT}", "1")
			deployment := &clusterv1.MachineDeployment{}
			NewWithT(t).Expect(yaml.Unmarshal([]byte(text), deployment)).To(Succeed(), flavor)
			NewWithT(t).Expect(deployment.Spec.Rollout.Strategy.Type).To(Equal(onDelete), flavor)
		}
	}
}

// TestClassHasAllOfTheInstallation: no field of spec.install is left that a Cluster of the class cannot set.
func TestClassHasAllOfTheInstallation(t *testing.T) {
	g := NewWithT(t)
	var settable []string
	for _, variable := range fields {
		for where := range variable.want {
			settable = append(settable, where.field)
		}
	}
	install := reflect.TypeFor[controlplanev1.InstallSpec]()
	for i := range install.NumField() {
		name, _, _ := strings.Cut(install.Field(i).Tag.Get("json"), ",")
		g.Expect(settable).To(ContainElement("install."+name), "add a variable for it")
	}
}

// restore makes a field what it is in another object.
func restore(g Gomega, object, from map[string]any, path []string) {
	value, exists, err := unstructured.NestedFieldCopy(from, path...)
	g.Expect(err).NotTo(HaveOccurred())
	if !exists {
		unstructured.RemoveNestedField(object, path...)
		return
	}
	g.Expect(unstructured.SetNestedField(object, value, path...)).To(Succeed())
}

// checkTypes checks that our templates have no fields but those of their types.
func checkTypes(t *testing.T, specs rendered) {
	t.Helper()
	for template, into := range map[string]any{
		controlPlane: &controlplanev1.OpenshiftAssistedControlPlaneTemplateResourceSpec{}, worker: &bootstrapv1.OpenshiftAssistedConfigSpec{},
	} {
		data, err := yaml.Marshal(specs[template])
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(yaml.UnmarshalStrict(data, into)).To(Succeed(), template)
	}
}
