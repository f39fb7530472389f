// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/light"
)

// Light plays the API of every installed cluster in this process. Nothing in it is rotated, shortened or audited.
func Light() APIServers { return lights{} }

type lights struct{}

func (lights) Start(_ context.Context, spec APIServerSpec) (APIServer, error) {
	handler, err := localcontrolplane.ServeAPI(localcontrolplane.APIServerOptions{Name: spec.Name, SANs: spec.SANs}, light.New())
	if err != nil {
		return nil, err
	}
	return lightServer{handler}, nil
}

type lightServer struct {
	*localcontrolplane.APIHandler
}

var errLight = errors.New("a light API cannot do that: let the cluster have a kube-apiserver")

func (lightServer) NextAuthority() ([]byte, error) { return nil, errLight }

func (lightServer) Rotate() error { return errLight }

func (lightServer) Shorten(string, time.Time) (string, error) { return "", errLight }

func (lightServer) AuditLog() string { return "" }
