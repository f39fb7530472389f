// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

const (
	upgradeVIP = "127.31.7.6"
	testGate   = "ack-4.20-kube-1.34-api-removals-in-4.21"
)

// testCatalogue has a z-stream whose gate has to be acknowledged before the minor version that follows it.
func testCatalogue() upgrade.Catalogue {
	image := func(digit string) string { return "quay.io/ocp@sha256:" + strings.Repeat(digit, 64) }
	return upgrade.Catalogue{
		Releases: []upgrade.Release{
			{Version: "4.20.0", Image: image("0"), KubeletVersion: "v1.33.4", OSImage: "CoreOS 4.20.0", Signed: true},
			{
				Version: "4.20.8", Image: image("8"), KubeletVersion: "v1.33.6", OSImage: "CoreOS 4.20.8", Signed: true,
				Gates: map[string]string{testGate: "Kubernetes 1.34 removes APIs."},
			},
			{Version: "4.21.3", Image: image("3"), KubeletVersion: "v1.34.2", OSImage: "CoreOS 4.21.3", Signed: true},
		},
		Edges: []upgrade.Edge{{From: "4.20.0", To: "4.20.8"}},
	}
}

// TestUpgrade gives a cluster a z-stream, then a minor version.
func TestUpgrade(t *testing.T) {
	g := NewWithT(t)
	m := startManager(t, g, Options{
		Poll: 40 * time.Millisecond, Catalogue: testCatalogue(), ReadyDelay: 100 * time.Millisecond,
		Etcd:    etcd.Options{Restart: 300 * time.Millisecond, HealthInterval: time.Millisecond},
		Upgrade: upgrade.Options{Restart: 300 * time.Millisecond},
	})
	s := &upgradeStory{story: &story{WithT: g, t: t, m: m, key: types.NamespacedName{Namespace: "default", Name: "demo"}}}
	s.spec = assisted.ClusterSpec{
		Key: s.key, Name: "demo", BaseDomain: "example.com", APIVIPs: []string{upgradeVIP}, ReleaseImage: testCatalogue().Releases[0].Image,
		Installing: true,
	}
	for i, name := range []string{"m0", "m1", "m2", "w0", "w1"} {
		s.addHost(name, "10.0.1."+strconv.Itoa(i+1))
	}
	t.Run("installed", s.installed)
	t.Run("what the API refuses", s.refused)
	t.Run("z-stream", s.zStream)
	t.Run("minor version", s.minor)
	t.Run("a new host", s.newHost)
	t.Run("steady", s.steady)
}

type upgradeStory struct {
	*story
}

func (s *upgradeStory) addHost(name, address string) {
	role := "worker"
	if name[0] == 'm' {
		role = "master"
	}
	s.spec.Nodes = append(s.spec.Nodes, assisted.NodeSpec{Name: name, Role: role, Addresses: []string{address}, Disk: "1", Running: true})
}

func (s *upgradeStory) version() *configv1.ClusterVersion {
	o := &configv1.ClusterVersion{}
	s.Expect(s.client().Get(s.t.Context(), client.ObjectKey{Name: "version"}, o)).To(Succeed())
	return o
}

func (s *upgradeStory) condition(kind string) configv1.ClusterOperatorStatusCondition {
	for _, condition := range s.version().Status.Conditions {
		if string(condition.Type) == kind {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{}
}

func (s *upgradeStory) nodes() []corev1.Node {
	list := &corev1.NodeList{}
	s.Expect(s.client().List(s.t.Context(), list)).To(Succeed())
	return list.Items
}

// sane expects what holds at any time: one member is away, one host of each pool is changed, and no worker before the control plane.
func (s *upgradeStory) sane(kubelet string) {
	s.Expect(s.m.LostQuorum(s.key)).To(BeFalse())
	away := slices.DeleteFunc(s.m.Members(s.key), func(member etcd.Member) bool { return member.Healthy })
	s.Expect(len(away)).To(BeNumerically("<=", 1))
	var old, cordoned, workers int
	for _, node := range s.nodes() {
		updated := node.Status.NodeInfo.KubeletVersion == kubelet
		switch {
		case roleOf(node) == upgrade.Worker && (updated || node.Spec.Unschedulable):
			workers++
		case roleOf(node) == upgrade.Master && !updated:
			old++
		}
		if roleOf(node) == upgrade.Master && node.Spec.Unschedulable {
			cordoned++
		}
	}
	s.Expect(cordoned).To(BeNumerically("<=", 1))
	s.Expect(workers == 0 || old == 0).To(BeTrue(), "workers come after the control plane")
}

// awaits waits for something, and expects what holds at any time.
func (s *upgradeStory) awaits(kubelet, what string, is func() bool) {
	s.Eventually(func() bool {
		s.sane(kubelet)
		return is()
	}, 2*time.Minute, 50*time.Millisecond).Should(BeTrue(), what)
}

// everywhere reports whether every Node has a kubelet and takes Pods.
func (s *upgradeStory) everywhere(kubelet string) bool {
	return !slices.ContainsFunc(s.nodes(), func(node corev1.Node) bool {
		return node.Status.NodeInfo.KubeletVersion != kubelet || node.Spec.Unschedulable || !ready(node) ||
			node.Annotations[stateAnnotation] != "Done"
	})
}

func (s *upgradeStory) completed(version string) bool {
	newest := s.version().Status.History[0]
	return newest.Version == version && newest.State == configv1.CompletedUpdate
}

func (s *upgradeStory) installed(*testing.T) {
	s.m.Apply(s.spec)
	s.Eventually(func() bool {
		status := s.m.Status(s.key)
		missing := func(n assisted.NodeSpec) bool { return !status.Nodes[n.Name].Ready }
		return len(status.Nodes) == 5 && !slices.ContainsFunc(s.spec.Nodes, missing)
	}, time.Minute).Should(BeTrue())
	s.Expect(s.m.Upgrade(s.key, func(*upgrade.Knobs) {})).NotTo(Succeed())
	s.spec.Complete = true
	s.m.Apply(s.spec)
	s.Eventually(func() string { return s.condition("ReleaseAccepted").Reason }, time.Minute).Should(Equal("PayloadLoaded"))
	s.Expect(s.version().Spec.Channel).To(Equal("stable-4.20"))
	s.Expect(s.version().Status.AvailableUpdates).To(ConsistOf(HaveField("Version", "4.20.8")))
	s.Expect(s.condition("Progressing").Message).To(Equal("Cluster version is 4.20.0"))
	for _, key := range []client.ObjectKey{adminGates, adminAcks} {
		o := &corev1.ConfigMap{}
		s.Expect(s.client().Get(s.t.Context(), key, o)).To(Succeed())
		s.Expect(o.Data).To(BeEmpty())
	}
	s.Expect(s.everywhere("v1.33.4")).To(BeTrue())
}

func (s *upgradeStory) refused(*testing.T) {
	ask := func(patch string) error {
		update := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desiredUpdate":`+patch+`}}`))
		return s.client().Patch(s.t.Context(), s.version(), update)
	}
	s.Expect(ask(`{"architecture":"Multi"}`)).To(MatchError(ContainSubstring("Version must be set if Architecture is set")))
	s.Expect(ask(`{"architecture":"Multi","version":"1","image":"a"}`)).
		To(MatchError(ContainSubstring("cannot set both Architecture and Image")))
	s.Expect(ask(`"4.20.8"`)).NotTo(Succeed())
	s.Expect(s.m.RequestOutOfBand(s.t.Context(), s.key, "4.99.0", false)).NotTo(Succeed())
}

// budget protects the application on w0 until disruptions are allowed.
func (s *upgradeStory) budget(disruptions int32) {
	o := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}
	o.Spec.MinAvailable = new(intstr.FromInt32(1))
	s.Expect(client.IgnoreAlreadyExists(s.client().Create(s.t.Context(), o))).To(Succeed())
	s.Expect(s.client().Get(s.t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	o.Status.ObservedGeneration, o.Status.DisruptionsAllowed, o.Status.ExpectedPods = o.Generation, disruptions, 1
	s.Expect(s.client().Status().Update(s.t.Context(), o)).To(Succeed())
}

func (s *upgradeStory) pod(name string) bool {
	err := s.client().Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.Pod{})
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

func (s *upgradeStory) zStream(*testing.T) {
	app := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app", Labels: map[string]string{"app": "app"}}}
	app.Spec = corev1.PodSpec{NodeName: "w0", Containers: []corev1.Container{{Name: "app", Image: "app"}}}
	agent := app.DeepCopy()
	agent.Name, agent.Labels = "agent", nil
	agent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: new(true)}}
	for _, pod := range []*corev1.Pod{app, agent} {
		s.Expect(s.client().Create(s.t.Context(), pod)).To(Succeed())
		pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, podReady(true)
		s.Expect(s.client().Status().Update(s.t.Context(), pod)).To(Succeed())
	}
	s.budget(0)
	s.Expect(s.m.RequestOutOfBand(s.t.Context(), s.key, "4.20.8", false)).To(Succeed())
	s.awaits("v1.33.6", "an update", func() bool { return strings.HasPrefix(s.condition("Progressing").Message, "Working towards 4.20.8: ") })
	s.awaits("v1.33.6", "4.20.8", func() bool { return s.completed("4.20.8") })
	s.Expect(s.version().Status.ObservedGeneration).To(Equal(s.version().Generation))
	s.Expect(s.version().Status.History).To(HaveLen(2))
	s.awaits("v1.33.6", "w0 is drained", func() bool { return s.node("w0").Spec.Unschedulable })
	s.Consistently(func() bool { return s.pod("app") && s.node("w0").Spec.Unschedulable }, time.Second).
		Should(BeTrue(), "a budget is respected")
	s.Expect(s.node("w0").Annotations).To(HaveKeyWithValue(stateAnnotation, "Working"))
	s.budget(1)
	s.awaits("v1.33.6", "all hosts", func() bool { return s.everywhere("v1.33.6") })
	s.Expect(s.pod("app")).To(BeFalse())
	s.Expect(s.pod("agent")).To(BeTrue(), "a DaemonSet's")
	s.Expect(s.node("m1").Status.NodeInfo.OSImage).To(Equal("CoreOS 4.20.8"))
	s.atRevision(8)
	operator := &configv1.ClusterOperator{}
	s.Expect(s.client().Get(s.t.Context(), client.ObjectKey{Name: "kube-apiserver"}, operator)).To(Succeed())
	s.Expect(operator.Status.Versions).To(ConsistOf(configv1.OperandVersion{Name: "operator", Version: "4.20.8"}))
}

// atRevision expects that every member has restarted once for each release.
func (s *upgradeStory) atRevision(revision int32) {
	o := &operatorv1.Etcd{}
	s.Expect(s.client().Get(s.t.Context(), client.ObjectKey{Name: "cluster"}, o)).To(Succeed())
	s.Expect(o.Status.LatestAvailableRevision).To(Equal(revision))
	s.Expect(o.Status.NodeStatuses).To(HaveEach(HaveField("CurrentRevision", revision)))
}

func (s *upgradeStory) minor(*testing.T) {
	s.Eventually(func() string { return s.condition("Upgradeable").Reason }, time.Minute).Should(Equal("AdminAckRequired"))
	gates, acks := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	s.Expect(s.client().Get(s.t.Context(), adminGates, gates)).To(Succeed())
	s.Expect(gates.Data).To(HaveKey(testGate))
	s.Expect(s.m.RequestOutOfBand(s.t.Context(), s.key, "4.21.3", false)).To(Succeed())
	s.Eventually(func() string { return s.condition("ReleaseAccepted").Message }, time.Minute).Should(ContainSubstring("AdminAckRequired"))
	s.Expect(s.version().Status.History).To(HaveLen(2))
	s.Expect(s.client().Get(s.t.Context(), adminAcks, acks)).To(Succeed())
	acks.Data = map[string]string{testGate: "true"}
	s.Expect(s.client().Update(s.t.Context(), acks)).To(Succeed())
	s.awaits("v1.34.2", "4.21.3", func() bool { return s.completed("4.21.3") })
	s.awaits("v1.34.2", "all hosts", func() bool { return s.everywhere("v1.34.2") })
	s.Expect(s.version().Status.History[0]).To(And(HaveField("Verified", true), HaveField("AcceptedRisks", "")))
	s.atRevision(9)
	s.Eventually(func(g Gomega) {
		pool := &machineconfigv1.MachineConfigPool{}
		g.Expect(s.client().Get(s.t.Context(), client.ObjectKey{Name: "worker"}, pool)).To(Succeed())
		g.Expect(pool.Status.UpdatedMachineCount).To(Equal(int32(2)))
		g.Expect(pool.Status.Configuration.Name).To(Equal(pool.Spec.Configuration.Name))
	}, time.Minute).Should(Succeed())
}

func (s *upgradeStory) newHost(*testing.T) {
	s.addHost("w2", "10.0.1.9")
	s.m.Apply(s.spec)
	s.Eventually(func() bool { return s.m.Status(s.key).Nodes["w2"].Ready }, time.Minute).Should(BeTrue())
	s.Expect(s.node("w2").Status.NodeInfo.KubeletVersion).To(Equal("v1.34.2"))
	s.Eventually(func() bool { return s.everywhere("v1.34.2") }, time.Minute).Should(BeTrue())
}

// The counters of the API server for requests, the resources that the simulator writes, and the verbs that write nothing.
var (
	requests  = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\d+)$`)
	simulated = regexp.MustCompile(
		`resource="(clusterversions|clusteroperators|machineconfigpools|etcds|nodes|pods|configmaps|poddisruptionbudgets)"`)
	reading = regexp.MustCompile(`verb="(GET|LIST|WATCH)"`)
)

// writes is how often somebody has written to the API.
func (s *upgradeStory) writes() int {
	config, err := s.m.Config(s.key)
	s.Expect(err).NotTo(HaveOccurred())
	set, err := kubernetes.NewForConfig(config)
	s.Expect(err).NotTo(HaveOccurred())
	text, err := set.RESTClient().Get().AbsPath("/metrics").DoRaw(s.t.Context())
	s.Expect(err).NotTo(HaveOccurred())
	total := 0
	for _, counter := range requests.FindAllStringSubmatch(string(text), -1) {
		if simulated.MatchString(counter[1]) && !reading.MatchString(counter[1]) {
			count, err := strconv.Atoi(counter[2])
			s.Expect(err).NotTo(HaveOccurred())
			total += count
		}
	}
	s.Expect(total).To(BeNumerically(">", 50))
	return total
}

func (s *upgradeStory) steady(*testing.T) {
	before := -1
	s.Eventually(func() bool {
		former := before
		before = s.writes()
		return before == former
	}, time.Minute, time.Second).Should(BeTrue())
	s.Consistently(s.writes, 3*time.Second, time.Second).Should(Equal(before), "there is nothing to write")
}
