// SPDX-License-Identifier: Apache-2.0

package host

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tries is how many stories TestRegistration plays.
const tries = 10_000

var registrationSeed = flag.Uint64("registration.seed", 1, "what TestRegistration makes its stories of")

// Times of a story, from the moment at which its Machines are made.
const (
	provisioningBegins = 100 * time.Second
	provisioned        = 115 * time.Second
	realsRegister      = 300 * time.Second
	installationBegins = 900 * time.Second
	rebootTakes        = 200 * time.Second
)

// story is what happens to host h0 of Cluster one while its hosts, and h2 of Cluster two, are let in.
type story struct {
	// known is whether inspection found the serial number of h0.
	known bool
	// twins is whether h1 has the system serial number of h0; oneBoard whether that of the board as well, so that both register as one Agent.
	twins, oneBoard bool
	// strangerMAC and strangerSerial are what a stranger has of h0. It registers at strangerAt, through the InfraEnv of Cluster one or two.
	strangerMAC, strangerSerial, strangerElsewhere bool
	strangerAt                                     time.Duration
	// clone is whether it has the board's serial number too, so that it registers as the Agent of h0.
	clone bool
	// earlier is whether h0 has an Agent of an earlier life; again is when it registers again, typo when a BareMetalHost with its MAC address
	// appears.
	earlier     bool
	again, typo time.Duration
	// begins is whether the installation begins in the end.
	begins bool
}

// never is later than the end of every story.
const never = time.Hour

func randomStory(r *rand.Rand) story {
	coin := func(n int) bool { return r.IntN(n) == 0 }
	st := story{known: !coin(3), twins: coin(4), again: never, typo: never, strangerAt: never, earlier: coin(6), begins: coin(4)}
	st.oneBoard = st.twins && coin(2)
	st.known = st.known || st.twins
	// Before the Machine, before the provisioning, during it, and after it; before or after the host itself.
	spans := [][2]time.Duration{
		{
			-time.Hour, 0,
		},
		{0, provisioningBegins - clockSkew},
		{provisioningBegins, provisioned},
		{provisioned, realsRegister},
		{realsRegister, installationBegins},
		{installationBegins, installationBegins + time.Minute},
	}
	moment := func() time.Duration {
		span := spans[r.IntN(len(spans))]
		return (span[0] + time.Duration(r.Int64N(int64(span[1]-span[0])))).Truncate(time.Second)
	}
	if !coin(6) {
		kind := r.IntN(4)
		st.strangerMAC, st.strangerSerial, st.strangerElsewhere = kind&1 != 0, kind&2 != 0, coin(4)
		st.strangerAt, st.clone = moment(), st.strangerSerial && coin(4)
	}
	if coin(3) {
		st.again = max(realsRegister+time.Second, moment())
	}
	if coin(4) {
		st.typo = moment()
	}
	return st
}

// toldApart is whether something that is known tells the stranger from h0: an address, the serial number, the InfraEnv, or the time at
// which its Agent was made.
func (st story) toldApart() bool {
	return !st.strangerMAC || st.known && !st.strangerSerial || st.strangerElsewhere || st.strangerAt < provisioningBegins-clockSkew
}

// wrong says what must not be after any event; "" when all is well.
func (g *stage) wrong() string {
	for i := range g.agents {
		a := &g.agents[i]
		switch {
		case !a.Spec.Approved:
		case g.behind[a.Name] == stranger && g.toldApart() && !g.began[a.Name]:
			return fmt.Sprintf("Agent %s is approved, and is the stranger, who is told apart", a.Name)
		case g.hosts[0].Status.Provisioning.State != bmov1alpha1.StateProvisioned:
			return fmt.Sprintf("Agent %s is approved before its host was booted", a.Name)
		case !a.Installing() && g.began[a.Name]:
			return fmt.Sprintf("Agent %s was torn down", a.Name)
		}
	}
	return g.wrongWithRivals()
}

// wrongWithRivals says what must not be while nothing tells the stranger from h0.
func (g *stage) wrongWithRivals() string {
	if g.clone || g.toldApart() || g.agent(stranger) == nil || g.agent("r-0") == nil || g.behind["r-0"] != "h0" {
		return ""
	}
	if g.approved(stranger) && !g.began[stranger] || g.approved("r-0") && !g.began["r-0"] {
		return "nothing tells the stranger from h0, and one of them is approved"
	}
	if told := g.recognized[0].Message; !strings.Contains(told, stranger+" (") || !strings.Contains(told, "r-0 (") {
		return "nothing tells the stranger from h0, and the condition does not name both: " + told
	}
	return ""
}

// wrongInTheEnd says what must not be when all has happened; "" when all is well.
func (g *stage) wrongInTheEnd() string {
	switch {
	case !g.approved("r-2"):
		return "h2 of the other Cluster, of which nobody wanted anything, is not let in: " + g.recognized[2].Message
	case g.oneBoard:
		return g.wrongWithOneBoard()
	case !g.approved("r-1"):
		return "h1 is not let in: " + g.recognized[1].Message
	case g.undisputed() && !g.approved("r-0"):
		return "h0 is not let in: " + g.recognized[0].Message
	}
	return ""
}

// wrongWithOneBoard says what must not be when h0 and h1 take turns in one Agent.
func (g *stage) wrongWithOneBoard() string {
	if g.strangerAt < never && (g.clone || g.strangerMAC && g.strangerSerial) {
		return "" // The stranger stands for h0, through whichever InfraEnv, and the Agent that both share for h1: two Agents for two hosts.
	}
	if g.approved("r-0") && !g.began["r-0"] {
		return "h0 and h1 share one Agent, which is approved"
	}
	for i, s := range g.scopes[:2] {
		if g.recognized[i].Status != metav1.ConditionFalse {
			return "h0 and h1 share one Agent, and Machine " + s.machine.Name + " does not say so"
		}
	}
	return ""
}

// rival reports whether the stranger comes with all that h0 is known by, or as its Agent.
func (st story) rival() bool {
	return st.strangerAt < never && (st.clone || st.strangerMAC && (!st.known || st.strangerSerial) && !st.strangerElsewhere)
}

// undisputed reports whether nothing in the story keeps h0 out: no rival, and no mistyped BareMetalHost from before its claim, which comes
// last where the host is rebooted on account of an earlier life.
func (st story) undisputed() bool {
	return !st.rival() && st.typo > realsRegister+examineTakes && (!st.earlier || st.typo == never)
}

// TestRegistration plays stories of registration, and lets the real decisions say who is let in: strangers with the MAC address of a host,
// its serial number, both or neither, before, while and after it is provisioned; registrations anew; hosts with one serial number or one
// identity; two clusters; and a mistyped BareMetalHost. Nobody is ever approved whom anything that is known tells apart from the host.
// Where nothing does, nobody is approved once both have registered, and both are named. -args -registration.seed=N plays others.
func TestRegistration(t *testing.T) {
	t.Logf("seed %d", *registrationSeed)
	for n := range uint64(tries) {
		st := randomStory(rand.New(rand.NewPCG(*registrationSeed, n)))
		g := newStage(st)
		g.play(func() {
			if wrong := g.wrong(); wrong != "" {
				t.Fatalf("seed %d, story %d, after %s: %s\n%+v", *registrationSeed, n, g.now, wrong, st)
			}
		})
		if wrong := g.wrongInTheEnd(); wrong != "" {
			t.Fatalf("seed %d, story %d, in the end: %s\n%+v", *registrationSeed, n, wrong, st)
		}
	}
}
