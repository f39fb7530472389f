// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/capi-openshift/agent-providers/internal/report"
)

// lockedWriter lets the narrator, which is called by watches, and the steps of a run write to one output.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (w *lockedWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(data)
}

// lineWriter makes lines of the narrator out of what is written.
type lineWriter struct{ narrator *narrator }

func (w lineWriter) Write(data []byte) (int, error) {
	for line := range strings.Lines(string(data)) {
		w.narrator.printf("%s", strings.TrimRight(line, "\n"))
	}
	return len(data), nil
}

// report shows the cluster, where the time went, what the managers wrote, and how to look further.
func (r *run) report(ctx context.Context) error {
	r.timeline.enterPhase("")
	description, err := r.world.Describe(ctx, r.cluster.Namespace, r.cluster.Name)
	if err != nil {
		return err
	}
	svg := r.outFile(timelineChart)
	out := r.opts.Output
	return errors.Join(
		section(out, "clusterctl describe cluster "+r.cluster.Name, func(out io.Writer) error {
			_, err := io.WriteString(out, description)
			return err
		}),
		section(out, "Machines, seconds since the start (chart: "+svg+")", r.timeline.WriteText),
		section(out, "Elapsed time", r.timeline.WriteSpans),
		section(out, "API writes of the managers until the cluster was Available and its Machines Ready", func(out io.Writer) error {
			return writeAudit(out, r.installed, r.installedMachines)
		}),
		section(out, "While it runs", func(out io.Writer) error {
			_, err := fmt.Fprintf(
				out, "%s get clusters,machines,oacp,oac,bmh,agents\n%s\n%s --kubeconfig %s get nodes\n", r.kubectl(), r.clusterctl(),
				r.tool("kubectl"), r.clusterKubeconfig(),
			)
			return err
		}),
		r.writeFile(timelineText, r.timeline.WriteText), r.writeFile(timelineChart, r.timeline.WriteSVG),
		r.writeReport(ctx),
	)
}

// kubectl is how to begin a command about the objects of the cluster in the management cluster.
func (r *run) kubectl() string {
	return fmt.Sprintf("%s --kubeconfig %s -n %s", r.tool("kubectl"), r.outFile(managementKubeconfig), r.cluster.Namespace)
}

// clusterctl is the command that describes the cluster.
func (r *run) clusterctl() string {
	return fmt.Sprintf("%s --kubeconfig %s -n %s describe cluster %s", r.tool("clusterctl"), r.outFile(managementKubeconfig),
		r.cluster.Namespace, r.cluster.Name)
}

// writeKubeconfig lets the user look at the management cluster from the beginning, also if the cluster is never installed.
func (r *run) writeKubeconfig() error {
	admin, err := os.ReadFile(r.world.Management.AdminKubeconfig())
	if err != nil {
		return fmt.Errorf("cannot read the management cluster's kubeconfig: %w", err)
	}
	if err := os.WriteFile(r.outFile(managementKubeconfig), admin, 0o600); err != nil {
		return fmt.Errorf("cannot write the management cluster's kubeconfig: %w", err)
	}
	r.narrator.printf("look at it with: %s get clusters,machines,oacp,oac,bmh,agents", r.kubectl())
	r.narrator.printf("or with: %s", r.clusterctl())
	return nil
}

// tool is where linkTools puts a program.
func (r *run) tool(name string) string { return filepath.Join(r.outFile(tools), name) }

// linkTools puts kubectl and clusterctl, as the sandbox has built them, where the user finds them.
func (r *run) linkTools(ctx context.Context) error {
	for _, name := range []string{"kubectl", "clusterctl"} {
		path, err := r.world.Management.Tools().Path(ctx, name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(r.outFile(tools), 0o755); err != nil {
			return fmt.Errorf("cannot make the folder for %s: %w", name, err)
		}
		link := r.tool(name)
		if err := errors.Join(os.RemoveAll(link), os.Symlink(path, link)); err != nil {
			return fmt.Errorf("cannot link %s: %w", name, err)
		}
	}
	return nil
}

// clusterKubeconfig is the file for the kubeconfig of the installed cluster.
func (r *run) clusterKubeconfig() string { return r.outFile("kubeconfig-" + r.cluster.Name) }

// clear removes what an earlier run has left in Options.Out: its kubeconfigs point to servers that are gone.
func (r *run) clear() error {
	errs := []error{os.RemoveAll(r.clusterKubeconfig())}
	page := report.FileName(r.cluster.Name)
	for _, name := range []string{managementKubeconfig, timelineText, timelineChart, page, logFolder} {
		errs = append(errs, os.RemoveAll(r.outFile(name)))
	}
	return errors.Join(errs...)
}

func section(out io.Writer, title string, write func(io.Writer) error) error {
	if _, err := fmt.Fprintf(out, "\n%s\n%s\n", title, strings.Repeat("-", len(title))); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	if err := write(out); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}

func (r *run) writeFile(name string, write func(io.Writer) error) (err error) {
	file, err := os.Create(r.outFile(name))
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}

// explain shows where a failed run stands, for as far as it can be read. ctx may be over already.
func (r *run) explain(ctx context.Context) {
	if r.world == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), describeTimeout)
	defer cancel()
	description, err := r.world.Describe(ctx, r.cluster.Namespace, r.cluster.Name)
	if err != nil {
		description = err.Error() + "\n"
	}
	r.show(description)
	if err := r.writeReport(ctx); err != nil {
		fmt.Fprintln(r.opts.Output, "there is no report:", err)
	}
	logs, err := r.keepLogs()
	if err != nil {
		fmt.Fprintln(r.opts.Output, "the logs are lost:", err)
		return
	}
	fmt.Fprintf(r.opts.Output, "The logs of all processes are in %s\n", logs)
}

// showCluster prints what clusterctl says of the cluster now.
func (r *run) showCluster(ctx context.Context) error {
	description, err := r.world.Describe(ctx, r.cluster.Namespace, r.cluster.Name)
	if err == nil {
		r.show(description)
	}
	return err
}

// show prints what clusterctl says of the cluster.
func (r *run) show(description string) {
	fmt.Fprintf(r.opts.Output, "\nclusterctl describe cluster %s\n%s\n", r.cluster.Name, description)
}

// keepLogs copies the logs out of the management cluster's folder, which goes with it.
func (r *run) keepLogs() (string, error) {
	target := r.outFile(logFolder)
	if err := os.RemoveAll(target); err != nil {
		return "", fmt.Errorf("cannot remove old logs: %w", err)
	}
	if err := os.CopyFS(target, os.DirFS(r.world.Management.Dir()+"/logs")); err != nil {
		return "", fmt.Errorf("cannot keep the logs: %w", err)
	}
	return target, nil
}
