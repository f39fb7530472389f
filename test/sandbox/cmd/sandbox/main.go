// SPDX-License-Identifier: Apache-2.0

// Command sandbox installs an OpenShift cluster on hosts that do not exist, from a template to Available, adds a worker,
// and deletes it again, in a management cluster of its own. Its exit code is 0 only if every step was verified.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

func main() {
	// What is left to these loggers are retries of clients; the simulators have a log file of their own.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	opts, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = sandbox.Run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

func parse(args []string) (sandbox.Options, error) {
	opts := sandbox.Options{Output: os.Stdout}
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	topology := flags.String(
		"topology", "", fmt.Sprintf("shape of the cluster, one of %v; default: the template's, else %s", sandbox.Topologies(), sandbox.HA),
	)
	workers := flags.Int("workers", -1, "number of workers; -1 is the template's own number")
	flags.StringVar(
		&opts.Release,
		"release",
		"",
		fmt.Sprintf("release that is installed, one of %v; default: %s", sandbox.Releases(), sandbox.OpenShiftVersion),
	)
	flags.BoolVar(&opts.Hold, "hold", false, "leave everything running after the installation, until Ctrl-C")
	flags.StringVar(&opts.Fault, "fault", "", "what goes wrong:"+faultList())
	flags.BoolVar(&opts.Retry, "retry", false, "ask for another attempt after a reported failure of the installation, and verify that")
	flags.StringVar(&opts.Story, "story", "", "what happens to the installed cluster:"+storyList())
	flags.Float64Var(&opts.Speed, "speed", 1, "how fast simulated time passes")
	flags.Int64Var(&opts.Seed, "seed", 1, "decides which host a Machine gets")
	flags.StringVar(
		&opts.Template, "template", "",
		"template to apply instead of the topology's own: one of "+strings.Join(sandbox.Flavors(), ", ")+", or a path",
	)
	flags.StringVar(
		&opts.Boot, "boot", "",
		"how hosts boot, one of "+strings.Join(sandbox.BootModes(), ", ")+"; default: from a live ISO, or as the template says",
	)
	flags.StringVar(
		&opts.Metal3, "metal3", "", fmt.Sprintf("newest API version of Cluster API Provider Metal3, one of %v", sandbox.Metal3Versions()),
	)
	flags.StringVar(&opts.Address, "address", "", "loopback address of the API of the cluster, for runs at the same time")
	flags.StringVar(&opts.Out, "out", "out", "folder for the timeline and the kubeconfigs")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.Topology = sandbox.Topology(*topology)
	if *workers >= 0 {
		opts.Workers = workers
	}
	return opts, nil
}

func faultList() string {
	var list strings.Builder
	for _, fault := range sandbox.Faults() {
		fmt.Fprintf(&list, "\n  %s: %s", fault.Name, fault.Summary)
	}
	return list.String()
}

func storyList() string {
	var list strings.Builder
	for _, story := range sandbox.Stories() {
		fmt.Fprintf(&list, "\n  %s: %s", story.Name, story.Summary)
	}
	return list.String()
}
