// SPDX-License-Identifier: Apache-2.0

// Package localcontrolplane runs a real management cluster as processes on this machine: etcd, kube-apiserver and
// kube-controller-manager, Cluster API core with all its webhooks, and this project's managers as built binaries with
// their shipped flags, RBAC and leader election. Further kube-apiservers play installed clusters.
//
//	cp, err := localcontrolplane.Start(ctx, localcontrolplane.Options{Progress: os.Stderr})
//	defer cp.Stop()
//	err = cp.InstallCRDs(ctx, localcontrolplane.AllCRDs()...)
//	_, err = cp.StartCore(ctx)
//	_, err = cp.StartManager(ctx, localcontrolplane.BootstrapManager())
//
// Nothing is installed on the machine and nothing needs root: the programs are built as Go modules on first use and
// cached (see Tools), everything listens on 127.0.0.0/8 only, and all files are in one folder. When the calling process
// ends, however it ends, the kernel kills the children and a watcher removes that folder, so neither Ctrl-C nor a crash
// leaves anything behind. Linux is what this is tested on; elsewhere only Stop cleans up the processes.
package localcontrolplane
