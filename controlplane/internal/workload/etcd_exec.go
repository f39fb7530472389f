// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// Where etcd is in an OpenShift cluster: in static Pods of these labels, which have a container for etcdctl with all it needs in its
// environment.
const (
	etcdNamespace = "openshift-etcd"
	etcdLabel     = "app"
	etcdLabelIs   = "etcd"
	etcdContainer = "etcdctl"
)

const (
	// connectTimeout is what a command may take besides etcdctl's own time-outs: for the connection, and until the container runs it.
	connectTimeout = 15 * time.Second
	// maxOutput bounds each of the two outputs of a command. What etcdctl prints of seven members has some five thousand bytes.
	maxOutput = 1 << 20
)

// etcdPod is a Pod of etcd, in whose container etcdctl is run.
type etcdPod struct {
	config  *rest.Config
	cluster client.ObjectKey
	name    string
}

// etcdPod chooses one of the Ready Pods of etcd that are not on the Node avoid. It asks the API server: a cache would hold Pods for a
// few commands a month. The choice is random: where one Node cannot run commands, a later pass finds the Node that can.
func (c Cached) etcdPod(ctx context.Context, cluster client.ObjectKey, avoid string) (*etcdPod, error) {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := remote.List(ctx, pods, client.InNamespace(etcdNamespace), client.MatchingLabels{etcdLabel: etcdLabelIs}); err != nil {
		return nil, fmt.Errorf("list Pods of etcd of Cluster %s: %w", cluster, err)
	}
	usable := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == avoid || !runsEtcdctl(&pod) })
	if len(usable) == 0 {
		return nil, fmt.Errorf("Cluster %s has no Ready Pod with label %s=%s and a container %s in Namespace %s, on another Node than %q",
			cluster, etcdLabel, etcdLabelIs, etcdContainer, etcdNamespace, avoid)
	}
	config, err := c.Cache.GetRESTConfig(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	return &etcdPod{config: config, cluster: cluster, name: usable[rand.Intn(len(usable))].Name}, nil
}

// runsEtcdctl reports whether a program can be run in the container of a Pod.
func runsEtcdctl(pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
	has := slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool { return container.Name == etcdContainer })
	// Its name becomes part of a URL and of messages.
	return ready && has && pod.DeletionTimestamp.IsZero() && len(validation.IsDNS1123Subdomain(pod.Name)) == 0
}

// failed says what could not be done, and where. What the cluster says is on one line, and cut. Which Pod it was is not said: the next try
// takes another, and a condition whose message changes with every pass triggers the next one.
func (p *etcdPod) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s through a Pod in Namespace %s of Cluster %s: %w", what, etcdNamespace, p.cluster, quoted{err})
}

// quoted is an error with words of a cluster: they are put on one line, and cut.
type quoted struct{ error }

// varying are the URL of a Pod, the ends of a connection, and the time at which a certificate was looked at, which are others with every
// try.
var varying = regexp.MustCompile(`(?:Get|Post) "[^"]*": |(?:read|write|dial) (?:tcp|udp) [^ ]+: |current time [^ ]+ is `)

func (q quoted) Error() string { return oneLine(varying.ReplaceAllString(q.error.Error(), "")) }

func (q quoted) Unwrap() error { return q.error }

// printed is what etcdctl printed before it exited.
type printed struct {
	stdout []byte
	stderr string
	code   int
}

// words are etcdctl's own words for its failure. It prints them at the end of what it logs.
func (p *printed) words() string {
	for _, line := range slices.Backward(strings.Split(p.stderr, "\n")) {
		if words, ok := strings.CutPrefix(strings.TrimSpace(line), "Error: "); ok {
			return words
		}
	}
	return strings.TrimSpace(p.stderr)
}

// failure is why etcdctl exited with an error; nil when it did not.
func (p *printed) failure() error {
	if p.code == 0 {
		return nil
	}
	return fmt.Errorf("etcdctl exited with code %d: %s", p.code, p.words())
}

// run runs etcdctl once, whatever comes of it: nothing here may repeat a change. Exit code 0 with less output than etcdctl prints may mean
// that the connection was cut: the protocol of exec cannot tell.
func (p *etcdPod) run(ctx context.Context, atMost time.Duration, args ...string) (_ *printed, err error) {
	ctx, call := tracing.Begin(ctx, "etcdctl")
	defer func() { call.End(err) }()
	call.SetAll(tracing.CommandAttribute, args)
	atMost += connectTimeout
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, atMost, fmt.Errorf("no answer within %s: %w", atMost, context.DeadlineExceeded))
	defer stop()
	executor, err := p.executor(ctx, append([]string{"etcdctl"}, args...))
	if err != nil {
		return nil, err
	}
	tooLong := func() { cancel(fmt.Errorf("etcdctl printed more than %d bytes", maxOutput)) }
	stdout, stderr := &output{tooLong: tooLong}, &output{tooLong: tooLong}
	// What the streams log, as errors that nobody handles, is in the error that they return.
	quiet := klog.NewContext(ctx, logr.Discard())
	err = executor.StreamWithContext(quiet, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // The connection has the same deadline, and may be the first to notice.
	}
	var exit exec.CodeExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return &printed{stdout: stdout.kept.Bytes(), stderr: stderr.kept.String(), code: exit.Code}, nil
}

// output keeps what a program prints, and gives up when it is too long: the cluster decides how much comes.
type output struct {
	tooLong func()

	// lock is for streams that are still copied when their command was given up.
	lock sync.Mutex
	kept bytes.Buffer
}

// Write keeps what fits. It does not fail: whoever copies to it would log that, and go on.
func (o *output) Write(part []byte) (int, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.kept.Len()+len(part) > maxOutput {
		o.tooLong()
		return len(part), nil
	}
	return o.kept.Write(part)
}
