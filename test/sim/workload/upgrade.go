// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// versionName is the only ClusterVersion of a cluster.
const versionName = "version"

// updates are the cluster-version operator and the machine-config operator of an installed cluster.
type updates struct {
	// lock guards the model, which exists once the installation is complete.
	lock  *sync.Mutex
	model *upgrade.Cluster

	// drained are the hosts on which nothing is left to evict.
	drained map[string]bool
	// shownVersion is what the ClusterVersion was last made to say, kubelets the images of the releases of which Nodes last told.
	shownVersion *configv1.ClusterVersionStatus
	kubelets     map[string]string
}

func newUpdates() updates {
	return updates{lock: &sync.Mutex{}, drained: map[string]bool{}, kubelets: map[string]string{}}
}

// with reads the model; it does nothing before there is one.
func (u *updates) with(read func(*upgrade.Cluster)) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.model != nil {
		read(u.model)
	}
}

// away reports whether a host restarts because it gets another release.
func (u *updates) away(host string) (away bool) {
	u.with(func(m *upgrade.Cluster) { away = m.Away(host) })
	return away
}

// updating reports whether operators or hosts get another release.
func (u *updates) updating() (updating bool) {
	u.with(func(m *upgrade.Cluster) { updating = m.Updating() })
	return updating
}

// toward is the image of the release that an operator should bring.
func (u *updates) toward(operator string) (image string) {
	u.with(func(m *upgrade.Cluster) { image = m.Toward(operator) })
	return image
}

// Upgrade changes what the operators of an installed cluster make of updates.
func (m *Manager) Upgrade(key types.NamespacedName, change func(*upgrade.Knobs)) error {
	c := m.find(key)
	changed := false
	if c != nil {
		c.updates.with(func(model *upgrade.Cluster) {
			change(&model.Knobs)
			changed = true
		})
	}
	if !changed {
		return fmt.Errorf("cluster %s gets no updates yet: wait until its installation is complete", key)
	}
	return nil
}

// OutOfBand is the user agent of RequestOutOfBand, by which an audit log tells its requests from those of others.
const OutOfBand = "oc"

// RequestOutOfBand asks the cluster itself for a release of the catalogue, by its image, as somebody does with oc adm upgrade.
func (m *Manager) RequestOutOfBand(ctx context.Context, key types.NamespacedName, version string, force bool) error {
	config, err := m.Config(key)
	if err != nil {
		return err
	}
	release, known := m.opts.Catalogue.ByVersion(version)
	if !known {
		return fmt.Errorf("release %s is not in Options.Catalogue", version)
	}
	patch, err := json.Marshal([]map[string]any{{
		"op": "add", "path": "/spec/desiredUpdate", "value": configv1.Update{Version: version, Image: release.Image, Force: force},
	}})
	if err != nil {
		return fmt.Errorf("cannot ask cluster %s for release %s: %w", key, version, err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = OutOfBand
	installed, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot make a client for cluster %s: %w", key, err)
	}
	o := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: versionName}}
	if err := installed.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("cannot ask cluster %s for release %s: %w", key, version, err)
	}
	return nil
}

// installed is the release with which a cluster is installed.
func (m *Manager) installed(spec assisted.ClusterSpec) upgrade.Release {
	release, known := m.opts.Catalogue.ByImage(spec.ReleaseImage)
	if !known {
		version := cmp.Or(taggedVersion(spec.ReleaseImage), m.opts.Version)
		release, _ = m.opts.Catalogue.ByVersion(version)
		release.Version, release.Signed = version, true
	}
	release.Image = spec.ReleaseImage
	release.OSImage = cmp.Or(release.OSImage, "Red Hat Enterprise Linux CoreOS "+release.Version)
	if m.opts.KubeletVersion != nil {
		release.KubeletVersion = m.opts.KubeletVersion(spec.Key)
	}
	release.KubeletVersion = cmp.Or(release.KubeletVersion, "v1.33.4")
	return release
}

// taggedVersion is the version in the tag of a release image, such as 4.20.8 in ocp-release:4.20.8-x86_64; empty when it has none.
func taggedVersion(image string) string {
	tag := image[strings.LastIndex(image, ":")+1:]
	for _, architecture := range []string{"x86_64", "aarch64", "ppc64le", "s390x", "multi", "arm64"} {
		tag = strings.TrimSuffix(tag, "-"+architecture)
	}
	if version, err := semver.Parse(tag); err == nil {
		return version.String()
	}
	return ""
}

// boot is the release with which a host joins.
func (c *cluster) boot(host assisted.NodeSpec) upgrade.Release {
	installed := c.manager.installed(c.wanted())
	release := installed
	c.updates.with(func(m *upgrade.Cluster) { release = m.Boot(host.Name, host.Role, host.Disk) })
	c.updates.kubelets[host.Name] = release.Image
	if release.Image == installed.Image {
		return installed
	}
	return release
}

// tickUpdates lets the operators look at the cluster. They begin when the installation is complete.
func (c *cluster) tickUpdates(ctx context.Context, spec assisted.ClusterSpec, nodes []corev1.Node) error {
	in := upgrade.Input{API: c.observed().APIUp && c.quorum(), Hosts: c.updateHosts(spec, nodes)}
	var err error
	if in.API {
		err = c.observeUpdates(ctx, spec, &in)
		in.API = err == nil
	}
	c.updates.with(func(m *upgrade.Cluster) { m.Tick(time.Now(), in) })
	return err
}

// observeUpdates reads what users write. With the first look the operators begin.
func (c *cluster) observeUpdates(ctx context.Context, spec assisted.ClusterSpec, in *upgrade.Input) error {
	version := &configv1.ClusterVersion{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: versionName}, version); err != nil {
		return fmt.Errorf("cannot read the ClusterVersion of cluster %s: %w", spec.Key, err)
	}
	in.Spec, in.Generation = version.Spec, version.Generation
	if c.updates.model == nil {
		if err := c.seedUpdates(ctx); err != nil {
			return err
		}
		installed := c.manager.installed(spec)
		model := upgrade.New(c.manager.opts.Catalogue.With(installed), c.manager.opts.Upgrade, installed, version.Status.History, operators)
		c.updates.lock.Lock()
		c.updates.model = model
		c.updates.lock.Unlock()
	}
	acks := &corev1.ConfigMap{}
	if err := c.client.Get(ctx, adminAcks, acks); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read ConfigMap %s of cluster %s: %w", adminAcks, spec.Key, err)
	}
	in.Acks = acks.Data
	pools := &machineconfigv1.MachineConfigPoolList{}
	if err := c.client.List(ctx, pools); err != nil {
		return fmt.Errorf("cannot list the MachineConfigPools of cluster %s: %w", spec.Key, err)
	}
	in.Paused = map[string]bool{}
	for i := range pools.Items {
		in.Paused[pools.Items[i].Name] = pools.Items[i].Spec.Paused
	}
	in.Busy, in.Degraded = c.operands()
	return nil
}

// The ConfigMaps of what has to be acknowledged before another minor version, and of what is.
var (
	adminGates = client.ObjectKey{Namespace: "openshift-config-managed", Name: "admin-gates"}
	adminAcks  = client.ObjectKey{Namespace: "openshift-config", Name: "admin-acks"}
)

// seedUpdates makes the ConfigMaps, which are empty.
func (c *cluster) seedUpdates(ctx context.Context) error {
	var errs []error
	for _, key := range []client.ObjectKey{adminGates, adminAcks} {
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		} {
			if err := client.IgnoreAlreadyExists(c.client.Create(ctx, o)); err != nil {
				errs = append(errs, fmt.Errorf("cannot create %T %s: %w", o, o.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// updateHosts are the hosts with their Nodes, and Nodes that no host has any more.
func (c *cluster) updateHosts(spec assisted.ClusterSpec, nodes []corev1.Node) []upgrade.Host {
	byName := map[string]corev1.Node{}
	for _, node := range nodes {
		byName[node.Name] = node
	}
	var hosts []upgrade.Host
	for _, h := range spec.Nodes {
		node, exists := byName[h.Name]
		delete(byName, h.Name)
		hosts = append(hosts, c.updateHost(upgrade.Host{Name: h.Name, Role: h.Role, Disk: h.Disk, Running: h.Running, Node: exists}, node))
	}
	for name, node := range byName {
		hosts = append(hosts, c.updateHost(upgrade.Host{Name: name, Role: roleOf(node), Node: true}, node))
	}
	slices.SortFunc(hosts, func(a, b upgrade.Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

// updateHost adds to a host what its Node tells of it, and whether it may restart.
func (c *cluster) updateHost(host upgrade.Host, node corev1.Node) upgrade.Host {
	host.Ready, host.Cordoned, host.Drained = ready(node), node.Spec.Unschedulable, c.updates.drained[host.Name]
	host.Held = host.Role != upgrade.Worker && c.etcdNeeds(host.Name)
	return host
}

// roleOf is the role of a Node.
func roleOf(node corev1.Node) string {
	for _, role := range []string{upgrade.Master, upgrade.Arbiter} {
		if _, is := node.Labels["node-role.kubernetes.io/"+role]; is {
			return role
		}
	}
	return upgrade.Worker
}

// etcdNeeds reports whether etcd cannot be without the member of a host now, because another one does not serve or is about to restart.
// That is what the guard pods are for, which a drain cannot evict then; but between the last look of a drain and the restart a member can
// begin to restart here, because the time between two looks is long.
func (c *cluster) etcdNeeds(host string) bool {
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	if c.etcd == nil {
		return false
	}
	return !c.etcd.Updated() || slices.ContainsFunc(c.etcd.Members(), func(m etcd.Member) bool { return m.Name != host && !m.Healthy })
}
