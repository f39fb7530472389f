// SPDX-License-Identifier: Apache-2.0

// Command scale measures what both managers cost with many clusters and hosts. Its exit code is 0 only if nothing was written where nothing
// had changed, every host was bound, and no cost grows faster than the clusters or hosts.
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

	"github.com/capi-openshift/agent-providers/test/scale"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	opts, record, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if record != "" {
		err = scale.Record(ctx, record, os.Stderr)
	} else {
		_, err = scale.Run(ctx, opts)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func parse(args []string) (opts scale.Options, record string, err error) {
	opts = scale.Options{Output: os.Stdout, Progress: os.Stderr}
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	profiles := flags.String(
		"profile", "", "what is measured, one or several of "+strings.Join(scale.Profiles(), ",")+"; default: all but install",
	)
	sizes := flags.String(
		"sizes", "small", "small, full, or numbers of clusters and hosts with commas between them; after hosts: of hosts alone",
	)
	flags.DurationVar(&opts.Idle, "idle", 0, "for how long idle managers are watched; default: 1m")
	flags.DurationVar(&opts.Window, "window", 0, "within which all hosts of a burst register, or all clusters are made; default: 1m, and none")
	flags.Float64Var(&opts.Speed, "speed", 1, "how many times faster than by default the simulators install, such as 0.1")
	flags.StringVar(&opts.Out, "out", "out", "folder for the results")
	flags.StringVar(&record, "record", "", "file for the objects of a new seed, which is recorded instead of measuring anything")
	if err := flags.Parse(args); err != nil {
		return opts, "", err
	}
	if *profiles != "" {
		opts.Profiles = strings.Split(*profiles, ",")
	}
	opts.Sizes, err = scale.ParseSizes(*sizes)
	return opts, record, err
}
