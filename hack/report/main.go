// SPDX-License-Identifier: Apache-2.0

// Command report writes one HTML page about a cluster: how far its Machines are, what is wrong, and where the time went. It reads
// Kubernetes objects of the management cluster and nothing else: no Secrets, and it writes nothing there. See docs/guides/report.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/report"
)

// options are the flags.
type options struct {
	kubeconfig string
	cluster    types.NamespacedName
	out, docs  string
}

func main() {
	// What a client has to say beside its errors is not for the one who wants a page.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	opts, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	fmt.Println(opts.out)
}

func parse(arguments []string, output io.Writer) (options, error) {
	opts := options{}
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; default: that of kubectl")
	flags.StringVar(&opts.cluster.Namespace, "namespace", "default", "namespace of the Cluster")
	flags.StringVar(&opts.cluster.Name, "cluster", "", "name of the Cluster")
	flags.StringVar(&opts.out, "out", "", "file to write; default: report-<cluster>.html")
	flags.StringVar(&opts.docs, "docs", report.DefaultDocs, "where links into the documentation lead")
	if err := flags.Parse(arguments); err != nil {
		return opts, err
	}
	if opts.cluster.Name == "" || flags.NArg() > 0 {
		err := errors.New("name one Cluster, with -cluster")
		fmt.Fprintln(output, "report:", err)
		return opts, err
	}
	if opts.out == "" {
		opts.out = report.FileName(opts.cluster.Name)
	}
	return opts, nil
}

func run(ctx context.Context, opts options) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	scheme, err := report.NewScheme()
	if err != nil {
		return err
	}
	hub, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot create a client for the management cluster: %w", err)
	}
	in, err := report.Collect(ctx, hub, opts.cluster)
	if err != nil {
		return err
	}
	in.Docs = opts.docs
	return report.WriteFile(opts.out, in)
}
