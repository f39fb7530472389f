// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	managerVariable = "LOCALCONTROLPLANE_TEST_MANAGER"
	crashVariable   = "LOCALCONTROLPLANE_TEST_CRASH"
)

// TestMain lets the test binary play a manager that StartManager runs, and a process that is killed while it has a
// control plane.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(managerVariable) != "":
		if err := playManager(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv(crashVariable) != "":
		playCrash(os.Getenv(crashVariable))
	default:
		os.Exit(m.Run())
	}
}

// playManager records in a ConfigMap what it was given and what it may not do, then serves /readyz and a webhook that
// refuses everything.
func playManager() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags, set := map[string]*string{}, flag.NewFlagSet("manager", flag.ExitOnError)
	names := []string{
		"kubeconfig", "health-addr", "webhook-port", "webhook-cert-dir", "webhook-host", "diagnostics-address", "leader-elect", "flavor",
	}
	for _, name := range names {
		flags[name] = set.String(name, "", "")
	}
	if err := set.Parse(os.Args[1:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *flags["kubeconfig"])
	if err != nil {
		return err
	}
	cl, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace := os.Getenv("POD_NAMESPACE")
	_, err = cl.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "record"},
		Data:       map[string]string{"secrets-forbidden": fmt.Sprint(apierrors.IsForbidden(err))},
	}
	for name, value := range flags {
		record.Data[name] = *value
	}
	if _, err := cl.CoreV1().ConfigMaps(namespace).Create(ctx, record, metav1.CreateOptions{}); err != nil {
		return err
	}
	return serve(ctx, flags)
}

func serve(ctx context.Context, flags map[string]*string) error {
	ready := http.NewServeMux()
	ready.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	refuse := http.NewServeMux()
	refuse.HandleFunc("/validate-services", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the test manager refuses", http.StatusTeapot)
	})
	ended := make(chan error, 2)
	go func() {
		server := &http.Server{Addr: *flags["health-addr"], Handler: ready, ReadHeaderTimeout: time.Second}
		ended <- server.ListenAndServe()
	}()
	go func() {
		server := &http.Server{Addr: *flags["webhook-host"] + ":" + *flags["webhook-port"], Handler: refuse, ReadHeaderTimeout: time.Second}
		ended <- server.ListenAndServeTLS(*flags["webhook-cert-dir"]+"/tls.crt", *flags["webhook-cert-dir"]+"/tls.key")
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// playCrash makes a control plane folder with one child, says on standard output which process the child is, and waits
// to be killed.
func playCrash(dir string) {
	cp, err := newControlPlane(Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	child := cp.newProcess(processSpec{
		name: "child", path: "/bin/sh", args: []string{"-c", "while :; do read line </dev/zero; done"},
		ready: func(context.Context) error { return nil },
	})
	if err := cp.start(context.Background(), child); err != nil {
		panic(err)
	}
	fmt.Println(child.PID())
	select {}
}
