// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	ignitiontypes "github.com/coreos/ignition/v2/config/v3_2/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// discoveryIgnition is the name of the file that a disk image boots with.
	discoveryIgnition = "discovery.ign"
	// ignitionVersion is that of the service's discovery ignition.
	ignitionVersion = "3.1.0"
	requestTimeout  = 10 * time.Second
)

// agentToken finds the token in a discovery ignition.
var agentToken = regexp.MustCompile(`PULL_SECRET_TOKEN=([A-Za-z0-9_-]+)`)

// artifactServer serves what hosts download from the service itself, on loopback.
type artifactServer struct {
	url string
}

// artifactPath is where the files of an InfraEnv are.
func artifactPath(infraEnvID string) string {
	return "/api/assisted-install/v2/infra-envs/" + infraEnvID + "/downloads/files"
}

// setupArtifacts listens, because the address is part of every InfraEnv's status, and serves while the manager runs.
func (s *Simulator) setupArtifacts(mgr ctrl.Manager) error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen for downloads of discovery ignitions: %w", err)
	}
	s.artifacts.url = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+artifactPath("{id}"), s.serveArtifact)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: requestTimeout}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve discovery ignitions: %w", err)
		}
		return nil
	}))
}

// serveArtifact answers as the service's REST API does: 401 without a token of the InfraEnv.
func (s *Simulator) serveArtifact(w http.ResponseWriter, r *http.Request) {
	if s.backend.downFor() > 0 {
		http.Error(w, "the service is down", http.StatusServiceUnavailable)
		return
	}
	token := r.URL.Query().Get("api_key")
	switch {
	case !s.backend.admits(r.PathValue("id"), token):
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case r.URL.Query().Get("file_name") != discoveryIgnition:
		http.Error(w, "no such file", http.StatusNotFound)
	default:
		content, err := discoveryIgnitionFor(s.artifacts.url, r.PathValue("id"), token)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(content) // A client that went away asks again.
	}
}

// admits says whether a token is one of the InfraEnv's, of which every one that it ever had counts.
func (b *backend) admits(infraEnvID, token string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, known := b.tokens[token]
	return known && b.infraEnvs[key] != nil && b.infraEnvs[key].id == infraEnvID
}

// discoveryIgnitionFor starts the agent with the token of its InfraEnv.
func discoveryIgnitionFor(url, infraEnvID, token string) ([]byte, error) {
	unit := fmt.Sprintf(
		"[Service]\nEnvironment=PULL_SECRET_TOKEN=%s\nExecStart=/usr/local/bin/agent --url %s --infra-env-id %s\n", token, url, infraEnvID,
	)
	return json.Marshal(ignitiontypes.Config{
		Ignition: ignitiontypes.Ignition{Version: ignitionVersion},
		Systemd: ignitiontypes.Systemd{Units: []ignitiontypes.Unit{{
			Name: "agent.service", Enabled: ptr.To(true), Contents: &unit,
		}}},
	})
}
