// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

const (
	// rotatedLifetime is how long the tokens live that the cluster grants, however long a life is asked for. The control plane provider renews
	// a token at half of its life, and not before a minute is over. It is the same at every speed.
	rotatedLifetime = 2 * time.Minute
	// renewals is how many renewals are waited for before the authority is rotated.
	renewals = 3
	// accountSettles is for how long after a token was issued the control plane provider does not believe that its ServiceAccount is missing:
	// its cache may be behind. A little more is waited for, since it counts whole seconds.
	accountSettles = 12 * time.Second
	// remoteGrace is after how long without a connection Cluster API says so, with some seconds to spare. Nothing is proved before that.
	remoteGrace = time.Minute

	accountNamespace = "openshift-assisted-capi"
	accountName      = "cluster-api"
)

// rotateSteps follow the credential of an installed cluster through renewals, another authority, and the loss of its ServiceAccount.
func (r *run) rotateSteps() []step {
	steps := []step{{"await a token", r.awaitFirstToken}}
	for i := range renewals {
		steps = append(steps, step{fmt.Sprintf("await renewal %d of %d", i+1, renewals), r.awaitRenewal})
	}
	return append(steps,
		step{"rotate the authority of the API", r.rotateAuthority},
		step{"await Cluster API's own connection", r.awaitReconnected},
		step{"await a renewal by the new authority", r.awaitRenewal},
		step{"delete the ServiceAccount of the token", r.deleteAccount},
		step{"watch the connection", r.watchConnection},
		step{"end the probe", r.endProbe},
	)
}

// watchCredential begins to connect with the published kubeconfig, and to watch that Cluster API keeps its connection.
func (r *run) watchCredential(ctx context.Context) error {
	r.probe = startProbe(ctx, r.world, r.cluster)
	r.guard = &guard{}
	r.world.Watch.OnChange(func(object client.Object) {
		switch o := object.(type) {
		case *clusterv1.Cluster:
			if client.ObjectKeyFromObject(o) == r.cluster && o.DeletionTimestamp.IsZero() {
				r.guard.demand(o, clusterv1.ClusterAvailableCondition, clusterv1.ClusterRemoteConnectionProbeCondition)
			}
		case *controlplanev1.OpenshiftAssistedControlPlane:
			if client.ObjectKeyFromObject(o) == InstallKey(r.cluster) && o.DeletionTimestamp.IsZero() {
				r.guard.demand(o, controlplanev1.AvailableCondition, controlplanev1.KubeconfigAvailableCondition)
			}
		}
	})
	return nil
}

// demand breaks the guard when one of the conditions is not True.
func (g *guard) demand(object conditions.Getter, conditionTypes ...string) {
	for _, conditionType := range conditionTypes {
		if !conditions.IsTrue(object, conditionType) {
			g.breaks(conditionText(object, conditionType))
		}
	}
}

// awaitFirstToken waits until the Secret holds a token in the place of the installer's credential.
func (r *run) awaitFirstToken(ctx context.Context) error {
	return r.awaitToken(ctx, r.slower(settleTimeout), 1)
}

// awaitRenewal waits for another token than there were, which has to come when the one before has lived for half of its life.
func (r *run) awaitRenewal(ctx context.Context) error {
	before := r.probe.seen()
	if err := r.awaitToken(ctx, rotatedLifetime, len(before)+1); err != nil {
		return err
	}
	former, token := before[len(before)-1], r.probe.seen()[len(before)]
	if token.seen.Before(former.renewAfter) || !token.seen.Before(former.expires) {
		return fmt.Errorf("the token was to be renewed after %s and before %s, and was at %s", former.renewAfter, former.expires,
			token.seen.UTC())
	}
	r.narrator.printf("the one before was renewed %s before its end", former.expires.Sub(token.seen).Round(time.Second))
	return nil
}

// awaitToken waits until the Secret has held so many tokens, and the control plane says until when the last one is valid.
func (r *run) awaitToken(ctx context.Context, timeout time.Duration, count int) error {
	what := fmt.Sprintf("token %d in Secret %s-kubeconfig", count, r.cluster.Name)
	err := pollUntil(ctx, timeout, what, func(ctx context.Context) (string, error) {
		tokens := r.probe.seen()
		if len(tokens) < count {
			return fmt.Sprintf("it has held %d tokens", len(tokens)), nil
		}
		controlPlane, err := r.world.controlPlaneOf(ctx, r.cluster)
		if err != nil {
			return "", err
		}
		until := "holds a token that is valid until " + tokens[count-1].expires.UTC().Format(time.RFC3339)
		if !strings.Contains(conditions.GetMessage(controlPlane, controlplanev1.KubeconfigAvailableCondition), until) {
			return conditionText(controlPlane, controlplanev1.KubeconfigAvailableCondition), nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	token := r.probe.seen()[count-1]
	if left := token.expires.Sub(token.seen); left > rotatedLifetime {
		return fmt.Errorf("the cluster grants tokens for %s, and the Secret says that its token is valid for %s", rotatedLifetime, left)
	}
	r.narrator.printf("Secret %s-kubeconfig holds token %d, valid until %s", r.cluster.Name, count, token.expires.UTC().Format(time.RFC3339))
	return nil
}

// rotateAuthority lets the cluster announce another authority, and sign the certificate of its API with it once the Secret trusts it. The
// real operator leaves more than a day between the two.
func (r *run) rotateAuthority(ctx context.Context) error {
	install, workload := InstallKey(r.cluster), r.world.simulators.workload
	added, err := workload.RotateAuthority(ctx, install)
	if err != nil {
		return err
	}
	r.narrator.printf("the cluster adds an authority to ConfigMap openshift-config-managed/kube-apiserver-server-ca")
	err = pollUntil(ctx, r.slower(settleTimeout), "the Secret to trust the new authority", func(context.Context) (string, error) {
		if authorities, _ := r.probe.trust(); !bytes.Contains(authorities, added) {
			return "it does not", nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	r.narrator.printf("Secret %s-kubeconfig trusts it", r.cluster.Name)
	r.guard.excuse(2 * remoteGrace)
	if err := workload.SignAgain(install); err != nil {
		return err
	}
	block, _ := pem.Decode(added)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("cannot read the new authority: %w", err)
	}
	err = pollUntil(ctx, r.slower(settleTimeout), "a connection by the new authority", func(context.Context) (string, error) {
		if _, issuer := r.probe.trust(); issuer != certificate.Subject.CommonName {
			return "the API shows a certificate of " + issuer, nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	r.narrator.printf("the API servers restart, and show a certificate of %s", certificate.Subject.CommonName)
	return nil
}

// awaitReconnected waits until Cluster API has noticed that the connection which it made with the former authority is lost, and has made
// another one: it takes five health checks of ten seconds, and says that it has no connection after fifty. Whoever reads the Secret anew
// connects meanwhile.
func (r *run) awaitReconnected(ctx context.Context) error {
	over := time.Now().Add(remoteGrace)
	err := pollUntil(ctx, 2*remoteGrace, "Cluster API to connect again", func(ctx context.Context) (string, error) {
		if left := time.Until(over); left > 0 {
			return fmt.Sprintf("%s are left until it would say that it has no connection", left.Round(time.Second)), nil
		}
		cluster := &clusterv1.Cluster{}
		if err := r.world.Client.Get(ctx, r.cluster, cluster); err != nil {
			return "", fmt.Errorf("cannot read Cluster %s: %w", r.cluster, err)
		}
		return cmp.Or(notTrue(cluster, clusterv1.ClusterRemoteConnectionProbeCondition), notTrue(cluster, clusterv1.ClusterAvailableCondition)),
			nil
	})
	r.guard.excuse(0)
	if err == nil {
		r.narrator.printf("Cluster API has made its own connection anew")
	}
	return err
}

// deleteAccount revokes every token, as somebody may who cleans up in the cluster. The installer's credential is the way back.
func (r *run) deleteAccount(ctx context.Context) error {
	tokens := r.probe.seen()
	last := tokens[len(tokens)-1]
	err := pollUntil(ctx, 2*accountSettles, "the token to have settled", func(context.Context) (string, error) {
		if age := time.Since(last.seen); age < accountSettles {
			return fmt.Sprintf("it is %s old", age.Round(time.Second)), nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	kubeconfig := r.clusterKubeconfig()
	if err := r.world.WriteKubeconfig(ctx, r.cluster, kubeconfig); err != nil {
		return err
	}
	r.narrator.printf("somebody deletes ServiceAccount %s/%s in the cluster, which revokes the token", accountNamespace, accountName)
	_, err = r.world.Kubectl(ctx, "--kubeconfig", kubeconfig, "delete", "serviceaccount", accountName, "-n", accountNamespace)
	if err != nil {
		return err
	}
	if err := r.awaitToken(ctx, r.slower(settleTimeout), len(tokens)+1); err != nil {
		return err
	}
	// Whoever looks at the cluster with the file goes on with the token that is there now.
	return errors.Join(r.world.WriteKubeconfig(ctx, r.cluster, kubeconfig), r.verifyAccount(ctx))
}

// verifyAccount checks that there is a ServiceAccount again.
func (r *run) verifyAccount(ctx context.Context) error {
	installed, err := r.world.Installed(r.cluster)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: accountNamespace, Name: accountName}
	if err := installed.Get(ctx, key, &corev1.ServiceAccount{}); err != nil {
		return fmt.Errorf("cannot read ServiceAccount %s of Cluster %s: %w", key, r.cluster, err)
	}
	r.narrator.printf("the installer's credential has brought ServiceAccount %s back", key)
	return nil
}

// watchConnection waits until Cluster API would say that it has lost its connection.
func (r *run) watchConnection(ctx context.Context) error {
	r.narrator.printf("Cluster API would say after %s that it has lost its connection", remoteGrace)
	over := time.Now().Add(remoteGrace)
	return pollUntil(ctx, 2*remoteGrace, "the time to be over", func(context.Context) (string, error) {
		if left := time.Until(over); left > 0 {
			return fmt.Sprintf("%s are left", left.Round(time.Second)), nil
		}
		return "", r.verifyStory(ctx)
	})
}

func (r *run) endProbe(context.Context) error {
	r.probe.end()
	text, err := r.probe.verdict()
	r.narrator.printf("%s", text)
	return err
}

// pollUntil returns when check finds nothing missing in what no watch tells of. what names the goal in the error.
func pollUntil(ctx context.Context, timeout time.Duration, what string, check Check) error {
	missing := "nobody has looked"
	err := wait.PollUntilContextTimeout(ctx, probeInterval, timeout, true, func(ctx context.Context) (over bool, err error) {
		missing, err = check(ctx)
		return missing == "", err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("waited %s for %s, in vain: %s", timeout, what, missing)
	}
	if err != nil {
		return fmt.Errorf("cannot wait for %s: %w", what, err)
	}
	return nil
}
