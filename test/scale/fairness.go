// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	profileFairness = "fairness"
	// alone is the same calm tenant without the noisy one.
	alone = "-alone"

	// calmHosts is how many hosts of the calm tenant register, within calmWindow.
	calmHosts  = 40
	calmWindow = 10 * time.Second
	// flaps is how many objects of the noisy tenant are written in a second.
	flaps = 50

	// maxRatio is how much longer the calm tenant may wait for its answers because of the noisy one, and fairnessFloor the time below which
	// nobody waits: it is what a busy machine makes of a pass.
	maxRatio      = 2
	fairnessFloor = 0.25
	// maxBrokenKiB is how much memory one broken object of every kind may take in a manager.
	maxBrokenKiB = 256
)

// measureFairness measures how long the hosts of a calm tenant wait: alone, and beside a tenant who has as many broken objects of every
// kind as the size says.
func (m *measurement) measureFairness(ctx context.Context, h *hub, size int) error {
	h.printf("%d broken objects of every kind", size)
	before, err := m.calm(ctx, h, profileFairness+alone, size, func(context.Context) error { return nil })
	if err != nil {
		return err
	}
	trap, err := openTrap(ctx)
	if err != nil {
		return err
	}
	defer trap.close()
	noisy := newNoise(size, trap.address())
	if err := h.cp.Store(ctx, noisy.objects()); err != nil {
		return err
	}
	if _, err := m.calm(ctx, h, profileFairness, size, noisy.flap(h.client)); err != nil {
		return err
	}
	m.judge(before, &m.results[len(m.results)-1])
	return h.eraseNamespace(ctx, noisyNamespace)
}

// calm lets the hosts of one cluster register while something else goes on, and measures how long they wait.
func (m *measurement) calm(
	ctx context.Context, h *hub, profile string, size int, meanwhile func(context.Context) error,
) (result Result, err error) {
	if err := h.add(ctx, calmHosts); err != nil {
		return result, err
	}
	if err := h.runBeside(ctx, size); err != nil {
		return result, err
	}
	offset, err := auditEnd(h.cp.AuditLog())
	if err != nil {
		return result, err
	}
	c := h.copies[0]
	result, err = h.phase(ctx, profile, func(ctx context.Context) (time.Duration, error) {
		begin := time.Now()
		beside, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- meanwhile(beside) }()
		err := h.register(ctx, c, calmWindow)
		stop()
		return time.Since(begin), errors.Join(err, <-ended)
	})
	if err != nil {
		return result, err
	}
	result.Size = size
	agents, err := registrationsSince(h.cp.AuditLog(), offset, c.namespace, h.replicas[bootstrapName].User)
	if err != nil {
		return result, err
	}
	result.Times = burstTimes(agents)
	written, err := h.noiseWritten(offset)
	if err != nil {
		return result, err
	}
	if len(written) > 0 { // Annotations concern nobody.
		result.Problems = append(result.Problems, fmt.Sprintf("%s of %d: the noisy tenant had settled, and %d writes followed, such as %v",
			profile, size, len(written), written[:min(len(written), maxNamed)]))
	}
	if err := m.add(result, nil); err != nil {
		return result, err
	}
	if err := h.stopManagers(ctx); err != nil {
		return result, err
	}
	return result, h.erase(ctx)
}

// runBeside starts both managers and returns when the calm tenant's cluster is connected and nothing more is written for the noisy tenant.
// The managers never have nothing to do for that one: what fails is tried again.
func (h *hub) runBeside(ctx context.Context, size int) error {
	offset, err := auditEnd(h.cp.AuditLog())
	if err != nil {
		return err
	}
	if err := h.startManagers(ctx); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, lookInterval, settleTimeout(size), true, func(ctx context.Context) (bool, error) {
		told, err := h.replicas[controlPlaneName].gauges(ctx)
		return told.connected == float64(len(h.copies)), err
	})
	if err != nil {
		return fmt.Errorf("wait for the connection to the calm tenant's cluster: %w", err)
	}
	return h.noiseSettled(ctx, size, offset)
}

// noiseSettled returns when nothing has been written for the noisy tenant for a while.
func (h *hub) noiseSettled(ctx context.Context, size int, offset int64) error {
	written, since := -1, time.Now()
	return wait.PollUntilContextTimeout(ctx, restTime, settleTimeout(size), true, func(context.Context) (bool, error) {
		names, err := h.noiseWritten(offset)
		if err != nil {
			return false, err
		}
		if len(names) != written {
			written, since = len(names), time.Now()
		}
		return time.Since(since) >= 5*restTime, nil
	})
}

// noiseWritten are the writes of the managers for the noisy tenant since the audit log had a size.
func (h *hub) noiseWritten(offset int64) ([]string, error) {
	var written []string
	users := []string{h.replicas[bootstrapName].User, h.replicas[controlPlaneName].User}
	err := sandbox.ReadAuditFrom(h.cp.AuditLog(), offset, func(event *auditv1.Event) {
		if ref := event.ObjectRef; ref != nil && ref.Namespace == noisyNamespace && !sandbox.IsRead(event.Verb) &&
			slices.Contains(users, event.User.Username) {
			written = append(written, fmt.Sprintf("%s %s %s", event.Verb, ref.Resource, ref.Name))
		}
	})
	return written, err
}

// judge notes what the noisy tenant has cost the calm one, and the managers.
func (m *measurement) judge(before Result, beside *Result) {
	for _, way := range []string{"inventory to claim p99", "inventory to last write p99"} {
		base := max(before.Times[way], fairnessFloor)
		ratio := beside.Times[way] / base
		beside.Times[way+", ratio"] = ratio
		if ratio > maxRatio && !m.opts.Busy {
			beside.Problems = append(beside.Problems, fmt.Sprintf("%s of %d: %s took the calm tenant %.2f s, %.1f times as long as alone",
				beside.Profile, beside.Size, way, beside.Times[way], ratio))
		}
	}
	for _, manager := range []string{bootstrapName, controlPlaneName} {
		more := (beside.Costs[manager].MaxRSSMiB - before.Costs[manager].MaxRSSMiB) * 1024 / float64(beside.Size)
		beside.Times["KiB of "+manager+" for one broken object of every kind"] = more
		if beside.Size >= minMemorySize && more > maxBrokenKiB {
			beside.Problems = append(beside.Problems, fmt.Sprintf("%s of %d: one broken object of every kind takes %s %.0f KiB",
				beside.Profile, beside.Size, manager, more))
		}
	}
}

// minMemorySize is the smallest size whose memory is judged: that of fewer objects is lost in what garbage collections leave.
const minMemorySize = 100

// trap is a server that takes connections and never answers.
type trap struct {
	listener net.Listener
	held     chan net.Conn
}

func openTrap(ctx context.Context) (*trap, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", trapAddress+":0")
	if err != nil {
		return nil, fmt.Errorf("open a server that never answers: %w", err)
	}
	t := &trap{listener: listener, held: make(chan net.Conn, 1<<16)}
	go func() {
		defer close(t.held)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.held <- connection
		}
	}()
	return t, nil
}

// trapAddress is where the noisy tenant's servers are.
const trapAddress = "127.10.43.5"

func (t *trap) address() string {
	_, port, _ := net.SplitHostPort(t.listener.Addr().String())
	return net.JoinHostPort(trapAddress, port)
}

func (t *trap) close() {
	_ = t.listener.Close()
	for connection := range t.held {
		_ = connection.Close()
	}
}

// flap returns what writes an annotation of one object after the other, at a steady rate, until it is to end.
func (n noise) flap(c client.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(time.Second / flaps)
		defer ticker.Stop()
		targets := n.flapping()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			patch := []byte(`{"metadata":{"annotations":{"example.com/flap":"` + strconv.Itoa(i) + `"}}}`)
			err := c.Patch(ctx, targets[i%len(targets)], client.RawPatch(types.MergePatchType, patch))
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("write an annotation of the noisy tenant: %w", err)
			}
		}
	}
}

// eraseNamespace removes all objects of a namespace, while no manager runs.
func (h *hub) eraseNamespace(ctx context.Context, namespace string) error {
	var folders []localcontrolplane.StoredObject
	for _, k := range kinds {
		folder := localcontrolplane.StoredObject{Group: k.group, Resource: k.resource, Namespace: namespace}
		if k.clusterScoped {
			folder.Namespace, folder.Name = "", namespace
		}
		folders = append(folders, folder)
	}
	return h.cp.Erase(ctx, folders)
}
