// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

const (
	// probeInterval is between two connections of a probe, and probeTimeout is how long one may take, on a busy machine too.
	probeInterval = 250 * time.Millisecond
	probeTimeout  = 30 * time.Second
	// maxGap is for how long nobody may be able to connect.
	maxGap = 5 * time.Second
)

// probe connects to an installed cluster again and again, with what <cluster>-kubeconfig holds at that moment. It makes a connection of its
// own each time, since those that are kept outlive the certificate that they were made with.
type probe struct {
	world   *World
	cluster types.NamespacedName
	stop    context.CancelFunc
	stopped chan struct{}

	mu sync.Mutex
	// tokens are those that the Secret has held, each once.
	tokens []issuedToken
	// authorities and issuer are the certificates that the Secret trusts, as PEM, and who has signed the one that the API has shown, last.
	authorities []byte
	issuer      string
	// count is how often the API has answered. gap is for how long it has not, and why what was wrong in it.
	count int
	gap   Gap
	why   error
}

// issuedToken is a token that the Secret has held. What it is stays in the Secret.
type issuedToken struct {
	digest [sha256.Size]byte
	// expires and renewAfter are what the annotation of the Secret records, and seen is when the token was there first.
	expires, renewAfter, seen time.Time
}

// startProbe begins; the probe ends with end, or when ctx does.
func startProbe(ctx context.Context, world *World, cluster types.NamespacedName) *probe {
	ctx, stop := context.WithCancel(ctx)
	p := &probe{world: world, cluster: cluster, stop: stop, stopped: make(chan struct{}), why: errors.New("nobody has tried")}
	go func() {
		defer close(p.stopped)
		wait.UntilWithContext(ctx, p.once, probeInterval)
	}()
	return p
}

func (p *probe) end() {
	p.stop()
	<-p.stopped
}

// once connects once, and notes what came of it.
func (p *probe) once(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	begun := time.Now()
	issuer, err := p.connect(attempt)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.gap.Longest
	if p.gap.Note(begun, err == nil); p.gap.Longest > before {
		p.why = err
	}
	if err == nil {
		p.issuer = issuer
		p.count++
	}
}

// connect reads the ID of the cluster, which needs a credential. It returns who has signed the certificate of the API.
func (p *probe) connect(ctx context.Context) (issuer string, err error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: p.cluster.Namespace, Name: p.cluster.Name + "-kubeconfig"}
	if err := p.world.Client.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("cannot read Secret %s: %w", key.Name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[kubeconfigKey])
	if err != nil {
		return "", fmt.Errorf("cannot use Secret %s: %w", key.Name, err)
	}
	if err := p.note(secret, config); err != nil {
		return "", err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return "", fmt.Errorf("cannot use the certificates of Secret %s: %w", key.Name, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/apis/config.openshift.io/v1/clusterversions/version", nil)
	if err != nil {
		return "", fmt.Errorf("cannot call %s: %w", config.Host, err)
	}
	if config.BearerToken != "" {
		request.Header.Set("Authorization", "Bearer "+config.BearerToken)
	}
	response, err := (&http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("cannot call %s: %w", config.Host, err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("%s broke off: %w", config.Host, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", config.Host, response.Status)
	}
	return response.TLS.PeerCertificates[0].Issuer.CommonName, nil
}

// note remembers a token that was not there before. One of which the Secret does not say how long it lives is not remembered, so that the
// error comes with every connection.
func (p *probe) note(secret *corev1.Secret, config *rest.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.authorities = config.CAData
	if config.BearerToken == "" {
		return nil
	}
	token := issuedToken{digest: sha256.Sum256([]byte(config.BearerToken)), seen: time.Now()}
	if slices.ContainsFunc(p.tokens, func(known issuedToken) bool { return known.digest == token.digest }) {
		return nil
	}
	var life struct{ Expires, RenewAfter time.Time }
	if err := json.Unmarshal([]byte(secret.Annotations[controlplanev1.KubeconfigTokenAnnotation]), &life); err != nil {
		return fmt.Errorf("Secret %s does not say how long its token lives: %w", secret.Name, err)
	}
	token.expires, token.renewAfter = life.Expires, life.RenewAfter
	p.tokens = append(p.tokens, token)
	return nil
}

// seen are the tokens that the Secret has held so far.
func (p *probe) seen() []issuedToken {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tokens)
}

// trust is what the Secret trusts, as PEM, and who has signed the certificate that the API has shown last.
func (p *probe) trust() (authorities []byte, issuer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.authorities, p.issuer
}

// verdict says for how long nobody could connect; the error is that it was too long.
func (p *probe) verdict() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%d connections were made with Secret %s-kubeconfig, and for at most %s none could be made", p.count, p.cluster.Name,
		p.gap.Longest.Round(time.Millisecond))
	switch {
	case p.count == 0:
		return text, fmt.Errorf("nobody could connect to Cluster %s: %w", p.cluster.Name, p.why)
	case p.gap.Longest > maxGap:
		return text, fmt.Errorf("nobody could connect to Cluster %s for %s, and %s are allowed: %w", p.cluster.Name,
			p.gap.Longest.Round(time.Millisecond), maxGap, p.why)
	}
	return text, nil
}
