// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Result is how an exec of etcdctl ended.
type Result struct {
	// Ending says whether an exit code arrived. The other fields are empty when none did.
	Ending         Ending
	Stdout, Stderr string
	ExitCode       int
	// Took is how long the real etcdctl takes when something does not answer. The model does not wait; the simulated kubelets do.
	Took time.Duration
}

// Ending is how the connection of an exec ends.
type Ending string

// The endings: Ended has an exit code, Hangs never ends, Broken ends without an exit code. Only the fault ExecCut breaks an
// exec after it took effect.
const (
	Ended  Ending = ""
	Hangs  Ending = "Hangs"
	Broken Ending = "Broken"
)

// Exit codes of etcdctl.
const (
	exitError     = 1
	exitBadOutput = 4
	exitBadArgs   = 128
)

// Etcdctl runs etcdctl in container etcdctl of the pod on a host. Like the real container it takes the endpoints from its
// environment: the voters at the time when the pod's revision was made. args are the words of the command after the program,
// which may be the first of them. The model knows member list, member remove, endpoint status and move-leader, with the
// flags -w (--write-out) json and simple, --command-timeout and --cluster. It prints the status of endpoints as JSON only. Hosts
// are as the last Tick saw them.
func (c *Cluster) Etcdctl(from string, args []string) Result {
	fault := ExecFault("")
	if c.Faults.Exec != nil {
		fault = c.Faults.Exec(from, args)
	}
	switch {
	case fault == ExecHang:
		return Result{Ending: Hangs}
	case fault == ExecRefused || !c.hosts[from].Running || c.machines[from].installed == 0:
		return Result{Ending: Broken}
	}
	result := c.etcdctl(c.podEndpoints(from), args)
	switch fault {
	case ExecCut:
		return Result{Ending: Broken}
	case ExecGarbage:
		return Result{Stdout: result.Stdout[:len(result.Stdout)/2]}
	}
	return result
}

// call is one command line of etcdctl.
type call struct {
	command   string
	args      []string
	endpoints []string
	format    string
	cluster   bool
	timeout   time.Duration
}

// commands are those that the model knows, with what their usage says. Those without run are groups.
var commands = map[string]struct {
	usage string
	run   func(*Cluster, call) Result
}{
	"member":          {usage: "Membership related commands"},
	"member list":     {usage: "Lists all members in the cluster", run: (*Cluster).memberList},
	"member remove":   {usage: "Removes a member from the cluster", run: (*Cluster).memberRemove},
	"endpoint":        {usage: "Endpoint related commands"},
	"endpoint status": {usage: "Prints out the status of endpoints specified in `--endpoints` flag", run: (*Cluster).endpointStatus},
	"move-leader":     {usage: "Transfers leadership to another etcd cluster member.", run: (*Cluster).moveLeader},
}

// etcdctl runs one command line against the endpoints of the environment.
func (c *Cluster) etcdctl(endpoints, args []string) Result {
	if len(args) > 0 && (args[0] == "etcdctl" || strings.HasSuffix(args[0], "/etcdctl")) {
		args = args[1:]
	}
	asked := call{endpoints: endpoints, format: "simple", timeout: 5 * time.Second}
	words, wrong := asked.parse(args)
	asked.find(words)
	if _, known := commands[asked.command]; !known {
		return unknownCommand(words)
	}
	if asked.cluster && asked.command != "endpoint status" {
		wrong = "unknown flag: --cluster"
	}
	command := commands[asked.command]
	usage := fmt.Sprintf("NAME:\n  %s - %s\n", asked.command, command.usage)
	switch {
	case wrong != "":
		return Result{ExitCode: exitError, Stdout: usage, Stderr: "Error: " + wrong + "\n\n"}
	case command.run == nil:
		return Result{Stdout: usage} // A group with an unknown word is no error for the real one either.
	}
	return command.run(c, asked)
}

func unknownCommand(words []string) Result {
	first := strings.Join(slices.Concat(words, []string{""})[:1], "")
	text := fmt.Sprintf("Error: unknown command %q for \"etcdctl\"\nRun 'etcdctl --help' for usage.\n", first)
	return Result{ExitCode: exitError, Stderr: text}
}

// find splits the words into the command and its arguments.
func (a *call) find(words []string) {
	for length := min(2, len(words)); length > 0; length-- {
		if name := strings.Join(words[:length], " "); commands[name].usage != "" {
			a.command, a.args = name, words[length:]
			return
		}
	}
}

// parse reads the flags, and returns the other words and what is wrong with a flag.
func (a *call) parse(args []string) (words []string, wrong string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") || args[i] == "-" {
			words = append(words, args[i])
			continue
		}
		name, value, assigned := strings.Cut(args[i], "=")
		if strings.HasPrefix(name, "-w") && len(name) > 2 {
			name, value, assigned = "-w", strings.TrimPrefix(args[i], "-w"), true
		}
		if name != "--cluster" && !assigned && i+1 < len(args) {
			i++
			value = args[i]
		}
		if wrong = a.set(name, value); wrong != "" {
			return words, wrong
		}
	}
	return words, ""
}

// set takes a flag, and returns what is wrong with it.
func (a *call) set(name, value string) string {
	switch name {
	case "-w", "--write-out":
		a.format = value
	case "--cluster":
		a.cluster = value != "false"
	case "--command-timeout":
		timeout, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Sprintf("invalid argument %q for %q flag: %v", value, name, err)
		}
		a.timeout = timeout
	default:
		if strings.HasPrefix(name, "--") {
			return "unknown flag: " + name
		}
		return fmt.Sprintf("unknown shorthand flag: %q in %s", name[1], name)
	}
	return ""
}

// failure is an error of etcd as the client reports it: a line of its log, and the error.
type failure struct {
	method, code, text string
	// took is how long the client waited.
	took time.Duration
}

// Errors of etcd, and gRPC's codes for them.
const (
	codeDeadline     = "DeadlineExceeded"
	codeNotFound     = "NotFound"
	codePrecondition = "FailedPrecondition"
	codeUnavailable  = "Unavailable"
	codeUnknown      = "Unknown"

	textDeadline   = "context deadline exceeded"
	textLearner    = "etcdserver: rpc not supported for learner"
	textNotFound   = "etcdserver: member not found"
	textNotEnough  = "etcdserver: re-configuration failed due to not enough started members"
	textUnhealthy  = "etcdserver: unhealthy cluster"
	textTransferee = "etcdserver: bad leader transferee"
)

func (a *call) deadline(method string) *failure {
	return &failure{method: method, code: codeDeadline, text: textDeadline, took: a.timeout}
}

// log is the line that etcd's client writes to stderr for a call that failed.
func (c *Cluster) log(endpoints []string, f *failure) string {
	target := ""
	if len(endpoints) > 0 {
		target = strings.TrimPrefix(endpoints[0], "https://")
	}
	return fmt.Sprintf(`{"level":"warn","ts":%q,"logger":"etcd-client","caller":"v3@v%s/retry_interceptor.go:68",`+
		`"msg":"retrying of unary invoker failed","target":"etcd-endpoints://0xc000123456/%s","method":"/etcdserverpb.%s","attempt":0,`+
		`"error":"rpc error: code = %s desc = %s"}`+"\n",
		c.now.UTC().Format("2006-01-02T15:04:05.000000Z"), version, target, f.method, f.code, f.text)
}

// fail is how etcdctl ends when a call to etcd failed.
func (c *Cluster) fail(endpoints []string, f *failure, prefix string) Result {
	return Result{ExitCode: exitError, Stderr: c.log(endpoints, f) + "Error: " + prefix + f.text + "\n", Took: f.took}
}

func badArgs(format string, args ...any) Result {
	return Result{ExitCode: exitBadArgs, Stderr: "Error: " + fmt.Sprintf(format, args...) + "\n"}
}

// at is the member that answers at an endpoint, nil when nothing does.
func (c *Cluster) at(endpoint string) *member {
	return c.find(func(m *member) bool { return m.clientURL() == endpoint && c.healthy(m) })
}

// server is the member that takes a call which needs a voter and quorum: the first voter among the endpoints that answers.
func (c *Cluster) server(asked call, method string) (*member, *failure) {
	learner := false
	for _, endpoint := range asked.endpoints {
		m := c.at(endpoint)
		if m != nil && !m.learner && c.Quorum() {
			return m, nil
		}
		learner = learner || m != nil && m.learner
	}
	if learner && len(asked.endpoints) == 1 {
		return nil, &failure{method: method, code: codePrecondition, text: textLearner}
	}
	return nil, asked.deadline(method)
}
