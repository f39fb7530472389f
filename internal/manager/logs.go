// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"fmt"
	"strconv"

	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/logs"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sigs.k8s.io/cluster-api/util/flags"
)

// maxVerbosity is the most that is logged: client-go logs the bodies of requests and responses from 8 on, and with them the data of Secrets
// and the tokens of installed clusters.
const maxVerbosity = 7

// verbosityPath is where the diagnostics endpoint takes another verbosity while the manager runs.
const verbosityPath = "/debug/flags/v"

// LimitLogs keeps credentials out of the log, whatever --v and --vmodule say.
func (o *Options) LimitLogs() {
	o.Logs.Verbosity = min(o.Logs.Verbosity, maxVerbosity)
	for i := range o.Logs.VModule {
		o.Logs.VModule[i].Verbosity = min(o.Logs.VModule[i].Verbosity, maxVerbosity)
	}
}

// diagnostics are the options of the diagnostics endpoint, and those of TLS. The endpoint of Cluster API's managers sets any verbosity.
func (o *Options) diagnostics() ([]func(*tls.Config), *metricsserver.Options, error) {
	tlsOptions, metrics, err := flags.GetManagerOptions(o.Diagnostics)
	if err != nil {
		return nil, nil, fmt.Errorf("flags: %w", err)
	}
	if _, served := metrics.ExtraHandlers[verbosityPath]; served {
		metrics.ExtraHandlers[verbosityPath] = routes.StringFlagPutHandler(setVerbosity)
	}
	return tlsOptions, metrics, nil
}

// setVerbosity sets the verbosity of the whole program, up to the limit; the answer says what it is now.
func setVerbosity(value string) (string, error) {
	if v, err := strconv.ParseUint(value, 10, 32); err == nil {
		value = strconv.FormatUint(min(v, maxVerbosity), 10)
	}
	return logs.GlogSetter(value)
}
