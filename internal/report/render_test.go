// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/golden"
)

func render(g *WithT, in *Input) string {
	var page bytes.Buffer
	g.Expect(New(in).Write(&page)).To(Succeed())
	return page.String()
}

// TestGolden has the page of a cluster with one Machine, without the style sheet, which is a file of its own.
func TestGolden(t *testing.T) {
	g := NewWithT(t)
	page := render(g, oneMachine())
	head, rest, _ := strings.Cut(page, "<style>")
	_, body, found := strings.Cut(rest, "</style>")
	g.Expect(found).To(BeTrue())
	golden.Compare(t, "one-machine.html.golden", head+"<style></style>"+body)
}

// TestSameInputSamePage: maps on the way have no order.
func TestSameInputSamePage(t *testing.T) {
	g := NewWithT(t)
	withGone := func() *Input {
		in := manyMachines(60)
		for i := range 9 {
			past := PastMachine{UID: types.UID(fmt.Sprint(i)), Name: fmt.Sprint("gone-", i), Created: start}
			in.History.Machines = append(in.History.Machines, past)
		}
		return in
	}
	page := render(g, withGone())
	for range 5 {
		g.Expect(render(g, withGone())).To(Equal(page))
	}
}

// hostile would run, load or leave its place in a page that does not escape it.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>'</title></svg></style>javascript:alert(1)`

var (
	element   = regexp.MustCompile(`<([a-zA-Z][a-zA-Z0-9]*)`)
	attribute = regexp.MustCompile(`(?i)\s(on[a-z]+|src|srcset)\s*=`)
	reference = regexp.MustCompile(`(?:href|url\()\s*=?\s*"?([^")\s>]+)`)
)

// TestHostileTexts: names, messages and reasons of others stay texts.
func TestHostileTexts(t *testing.T) {
	g := NewWithT(t)
	in := sixMachines()
	plain := element.FindAllString(render(g, in), -1)
	in.Cluster.Name, in.ControlPlane.Name, in.Install.Name = hostile, hostile, hostile
	in.ControlPlane.Spec.DistributionVersion, in.ControlPlane.Spec.Version, in.ControlPlane.Status.Install.Phase = hostile, hostile, hostile
	for i := range in.Machines {
		old := in.Machines[i].Name
		in.Machines[i].Name = fmt.Sprint(old, hostile)
		in.Machines[i].Status.Phase = hostile
		in.Configs[i].Name = in.Machines[i].Name
		in.Machines[i].Spec.Bootstrap.ConfigRef.Name = in.Machines[i].Name
		for j := range in.Configs[i].Status.Conditions {
			in.Configs[i].Status.Conditions[j].Message = hostile
		}
	}
	for i := range in.Agents {
		in.Agents[i].Name, in.Agents[i].Status.DebugInfo.State, in.Agents[i].Status.Progress.CurrentStage = hostile, hostile, hostile
		for j := range in.Agents[i].Status.Conditions {
			in.Agents[i].Status.Conditions[j].Reason, in.Agents[i].Status.Conditions[j].Message = hostile, hostile
		}
	}
	in.Events[0].Message, in.Events[0].Reason = hostile, hostile
	in.Unread = nil
	page := render(g, in)
	g.Expect(strings.Count(page, "alert(1)")).To(BeNumerically(">", 60), "the texts are not on the page")
	for _, found := range element.FindAllString(page, -1) {
		g.Expect(plain).To(ContainElement(found), "a text has become an element")
	}
	for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(page, -1) {
		// What is inside of quotes is a text.
		bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(tag, `""`)
		g.Expect(attribute.MatchString(bare)).To(BeFalse(), "a text has become an attribute: %s", tag)
	}
}

// TestSelfContained: the page loads nothing, and leads to itself and to the documentation alone.
func TestSelfContained(t *testing.T) {
	g := NewWithT(t)
	in := sixMachines()
	in.Docs = "https://docs.example.com/v1/"
	page := render(g, in)
	for _, element := range []string{"<script", "<link", "<iframe", "<img", "<object", "<embed", "<form", "@import", "@font-face"} {
		g.Expect(page).NotTo(ContainSubstring(element))
	}
	found := reference.FindAllStringSubmatch(page, -1)
	g.Expect(len(found)).To(BeNumerically(">", 20))
	docs := 0
	for _, match := range found {
		g.Expect(match[1]).To(Or(HavePrefix("#"), HavePrefix("https://docs.example.com/v1/")))
		if strings.HasPrefix(match[1], "https:") {
			docs++
		}
		if anchor, local := strings.CutPrefix(match[1], "#"); local {
			g.Expect(page).To(ContainSubstring(`id="` + anchor + `"`))
		}
	}
	g.Expect(docs).To(BeNumerically(">", 10))
	g.Expect(page).To(ContainSubstring("default-src 'none'"))
}

// TestSecretsStayOut: what looks like a credential in a text of others is left out, and the rest of the text is not.
func TestSecretsStayOut(t *testing.T) {
	secret := "c2VjcmV0c2VjcmV0"
	for name, text := range map[string]string{
		"API key of an image":    "image https://assisted.example.com/images/1?arch=arm64&api_key=" + secret + "&type=minimal-iso is unreachable",
		"path of an image":       "image https://assisted.example.com/byapikey/" + secret + "/4.20/minimal.iso is unreachable",
		"token in a path":        "image https://assisted.example.com/bytoken/" + secret + "/4.20/minimal.iso is unreachable",
		"user and password":      "BMC redfish://admin:" + secret + "@10.0.0.1/redfish is unreachable",
		"password without user":  "proxy http://:" + secret + "@proxy:3128 is unreachable",
		"JWT":                    "token eyJhbGciOiJFUzI1NiJ9.eyJpbmZyYV9lbnZfaWQiOiIx." + secret + " is unreachable",
		"OpenShift token":        "token sha256~" + secret + " is unreachable",
		"bearer":                 "Authorization: Bearer " + secret + " is unreachable",
		"pull secret":            `{"auths":{"quay.io":{"auth":"` + secret + `"}}} is unreachable`,
		"password in JSON":       `{"password": "` + secret + `"} is unreachable`,
		"signed URL":             "https://s3.example.com/a?X-Amz-Signature=" + secret + " is unreachable",
		"private key":            "-----BEGIN RSA PRIVATE KEY-----\n" + secret + "\n-----END RSA PRIVATE KEY-----\nis unreachable",
		"private key, cut short": "is unreachable: -----BEGIN PRIVATE KEY-----\n" + secret,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := sixMachines()
			fail(in, "demo-control-plane-0", bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretRefusedReason, text, 0)
			in.Events = []corev1.Event{warning(corev1.ObjectReference{UID: "cluster"}, "Failed", text, time.Minute)}
			in.Unread = []string{text}
			in.History.Faults[0].Message = text
			in.Agents[0].Status.Conditions[0].Message = text
			in.Agents[0].Status.DebugInfo.State = text
			in.Hosts[0].Status.ErrorMessage = text
			page := render(g, in)
			g.Expect(page).NotTo(ContainSubstring(secret))
			g.Expect(strings.Count(page, "is unreachable")).To(BeNumerically(">=", 6))
		})
	}
}

// TestOrdinaryTexts: what is no credential stays.
func TestOrdinaryTexts(t *testing.T) {
	for _, text := range []string{
		"BareMetalHost host-0 (boot MAC 52:54:00:35:36:00, serial number \"SN-demo-host-0\") was booted",
		"Secret demo/pull-secret does not exist: create it", "registry quay.io/openshift@sha256:0123456789abcdef says no",
		"the token of demo-kubeconfig ends at 2026-10-12T08:00:00Z", "https://api.example.com:6443/version does not answer",
	} {
		NewWithT(t).Expect(redact(text)).To(Equal(text))
	}
	NewWithT(t).Expect([]rune(redact(strings.Repeat("é", 5000)))).To(HaveLen(longestMessage + 1))
}

// pixels of text that a character of the labels takes at most, and of a bar on a screen on which it is narrowest beside a name.
const (
	characterWidth = 6.8
	narrowestBar   = 512
)

// TestLayout holds bars to their axis, without a browser: nothing begins before the axis or ends behind it, no segment hides another, and
// every label has room. make test-report measures the page itself.
func TestLayout(t *testing.T) {
	for name, in := range samples() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := New(in)
			rects := 0
			for _, wave := range r.Waves {
				for _, group := range wave.Groups {
					rects += checkGroup(g, r.Draw(wave, group))
				}
				checkAxis(g, ticksOf(wave.End.Sub(wave.Start)))
			}
			g.Expect(rects).To(BeNumerically(">", 4))
		})
	}
}

func checkGroup(g *WithT, lines []Drawn) (rects int) {
	for _, line := range lines {
		rects += len(line.Bar.Rects)
		checkBar(g, line)
	}
	return rects
}

func checkAxis(g *WithT, ticks []Tick) {
	g.Expect(len(ticks)).To(BeNumerically(">=", 2))
	for i, tick := range ticks {
		g.Expect(tick.At).To(And(BeNumerically(">=", 0), BeNumerically("<=", 1)))
		if i > 0 {
			room := (tick.At - ticks[i-1].At) * narrowestBar
			g.Expect(room).To(BeNumerically(">", characterWidth*float64(len(duration(tick.After)))), "labels of the axis overlap")
		}
	}
}

func checkBar(g *WithT, line Drawn) {
	end := 0.0
	all := line.Bar.Rects
	if line.Next != "" {
		all = append(all[:len(all):len(all)], line.Bar.Open)
	}
	for _, r := range all {
		g.Expect(r.X).To(BeNumerically(">=", end-2*thinnest), "%s: %s is hidden", line.Name, r.Title)
		g.Expect(r.Width).To(BeNumerically(">=", thinnest))
		end = r.X + r.Width
		g.Expect(end).To(BeNumerically("<=", whole+0.001))
		g.Expect(characterWidth*float64(len(r.Label))).To(BeNumerically("<=", r.Width/whole*narrowestBar), "%q has no room", r.Label)
	}
	for _, m := range line.Bar.Marks {
		g.Expect(m.X).To(And(BeNumerically(">=", 0), BeNumerically("<=", whole)))
	}
}

// samples are the clusters that the page is looked at with.
func samples() map[string]*Input {
	return map[string]*Input{"1": oneMachine(), "6": sixMachines(), "200": manyMachines(200)}
}
