// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/trace"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m-0"}}

func named(name string) func() string { return func() string { return name } }

// a token as assisted-service makes them, which stands for all credentials.
const token = "eyJhbGciOiJFUzI1NiJ9.eyJpbmZyYV9lbnZfaWQiOiIxIn0.c2lnbmF0dXJl"

// TestWhatTheCollectorGets: three passes of a Machine, of which the first is noted on its config, and calls of one of them.
func TestWhatTheCollectorGets(t *testing.T) {
	g, c := NewWithT(t), startCollector(t)
	t.Setenv(EndpointVariable, c.address)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=telco")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab")
	t.Setenv("POD_NAME", "manager-1")
	ctx, flush := Setup(t.Context(), "manager", "v1.2.3", logr.Discard())
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	var came reconcile.Result
	var fails error
	pass := Passes(ctx, named("openshiftassistedconfig"), reconcile.Func(
		func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			Link(ctx, config)
			Mark(ctx, config)
			if came.RequeueAfter > 0 {
				g.Expect(get(ctx, server.URL+"/path?token="+token)).To(Equal(http.StatusNotFound))
			}
			return came, fails
		}))
	_, err := pass.Reconcile(t.Context(), request)
	g.Expect(err).NotTo(HaveOccurred())
	came.RequeueAfter = 1500 * time.Millisecond
	g.Expect(pass.Reconcile(t.Context(), request)).To(Equal(came))
	came, fails = reconcile.Result{}, fmt.Errorf(`fetch: Get "https://assisted.example.com/byapikey/%s/discovery.ign": EOF`, token)
	_, err = pass.Reconcile(t.Context(), request)
	g.Expect(err).To(Equal(fails))
	flush()

	spans := c.spans()
	g.Expect(spans).To(HaveLen(4))
	first, call, second, third := spans[0], spans[1], spans[2], spans[3]
	object := map[string]string{NamespaceAttribute: "ns", NameAttribute: "m-0"}
	g.Expect(config.Annotations).To(HaveKeyWithValue(bootstrapv1.TraceAnnotation, fmt.Sprintf("00-%x-%x-01", first.TraceId, first.SpanId)))
	machine := fmt.Sprintf("%x", first.TraceId)
	expectSpan(g, first, "openshiftassistedconfig", nil, with(object, ResultAttribute, ResultSuccess))
	g.Expect(first.Links).To(BeEmpty())
	expectSpan(g, second, "openshiftassistedconfig", nil,
		with(object, ResultAttribute, ResultRequeue, RequeueAttribute, "1.5", MachineAttribute, machine))
	expectSpan(g, call, "installed cluster", second, map[string]string{
		methodAttribute: "GET", serverAttribute: "127.0.0.1", pathAttribute: "/path", statusAttribute: "404",
	})
	g.Expect(call.Status.Code).To(Equal(tracev1.Status_STATUS_CODE_ERROR))
	expectSpan(g, third, "openshiftassistedconfig", nil, with(object, ResultAttribute, ResultError, MachineAttribute, machine))
	for _, later := range []*tracev1.Span{second, third} {
		g.Expect(later.TraceId).NotTo(Equal(first.TraceId), "a trace has one pass, because a Machine may have passes for years")
		g.Expect(later.Links).To(HaveExactElements(And(HaveField("TraceId", first.TraceId), HaveField("SpanId", first.SpanId))))
	}
	g.Expect(third.Status.Message).To(Equal(`fetch: Get "https://assisted.example.com/[redacted]": EOF`))
	g.Expect(values(third.Events[0].Attributes)).To(HaveKeyWithValue(errorMessageKey, third.Status.Message))
	g.Expect(fmt.Sprint(spans)).NotTo(ContainSubstring("eyJ"))
	g.Expect(c.heads[0]).To(HaveKeyWithValue("x-tenant", []string{"telco"}))
	g.Expect(c.resource()).To(And(HaveKeyWithValue("service.name", "manager"), HaveKeyWithValue("service.version", "v1.2.3"),
		HaveKeyWithValue("k8s.pod.name", "manager-1"), HaveKeyWithValue("deployment.environment", "lab")))
}

func expectSpan(g *WithT, span *tracev1.Span, name string, parent *tracev1.Span, attributes map[string]string) {
	g.Expect(span.Name).To(Equal(name))
	g.Expect(values(span.Attributes)).To(Equal(attributes))
	if parent == nil {
		g.Expect(span.ParentSpanId).To(BeEmpty())
		return
	}
	g.Expect(span.ParentSpanId).To(Equal(parent.SpanId))
	g.Expect(span.TraceId).To(Equal(parent.TraceId))
}

func with(attributes map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for name, value := range attributes {
		all[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// get asks as clients of installed clusters do.
func get(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := InstalledClusters.Wrap(http.DefaultTransport).RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// TestVariables: what the standard variables say is done.
func TestVariables(t *testing.T) {
	for name, tt := range map[string]struct {
		variables map[string]string
		service   string
		spans     int
		says      string
	}{
		"none":               {nil, "manager", 1, "Passes are traced"},
		"a name":             {map[string]string{"OTEL_SERVICE_NAME": "mine"}, "mine", 1, "Passes are traced"},
		"nothing is sampled": {map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, "", 0, "Passes are traced"},
		"off":                {map[string]string{disabledVariable: "TRUE"}, "", 0, ""},
		"no exporter":        {map[string]string{exporterVariable: "none"}, "", 0, ""},
		"another exporter":   {map[string]string{exporterVariable: "zipkin"}, "", 0, `OTEL_TRACES_EXPORTER is \"zipkin\"`},
		"another protocol":   {map[string]string{protocolVariable: "http/json"}, "", 0, "with grpc alone"},
		"another protocol of traces": {
			map[string]string{protocolVariable: "grpc", tracesProtocolVariable: "http/json"}, "", 0, "with grpc alone",
		},
		"no endpoint": {map[string]string{EndpointVariable: ""}, "", 0, ""},
		"a header without a value": {
			map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "topsecret"}, "manager", 1, "A setting of OpenTelemetry cannot be used",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, c, logged := NewWithT(t), startCollector(t), &strings.Builder{}
			t.Setenv(EndpointVariable, c.address)
			for variable, value := range tt.variables {
				t.Setenv(variable, value)
			}
			ctx, flush := Setup(t.Context(), "manager", "v1", funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{}))
			_, err := Passes(ctx, named("c"), nothing).Reconcile(t.Context(), request)
			g.Expect(err).NotTo(HaveOccurred())
			flush()
			g.Expect(c.spans()).To(HaveLen(tt.spans))
			if tt.spans > 0 {
				g.Expect(c.resource()).To(HaveKeyWithValue("service.name", tt.service))
			}
			if tt.says == "" {
				g.Expect(logged.String()).To(BeEmpty())
			}
			g.Expect(logged.String()).To(ContainSubstring(tt.says))
			g.Expect(logged.String()).NotTo(ContainSubstring("topsecret"))
		})
	}
}

var nothing = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })

// TestOff: without a collector there is nothing at all, and a pass costs what it did before.
func TestOff(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(EndpointVariable, "")
	before := t.Context()
	ctx, flush := Setup(before, "manager", "v1", logr.Discard())
	flush()
	g.Expect(ctx).To(BeIdenticalTo(before))
	r := &counts{}
	g.Expect(Passes(ctx, named("c"), r)).To(BeIdenticalTo(r))
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	config.Annotations = map[string]string{bootstrapv1.TraceAnnotation: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	plain, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	arguments, transport, failure := []string{"a"}, answers{}, errors.New("it fails")
	g.Expect(testing.AllocsPerRun(100, func() {
		Link(ctx, config)
		Mark(ctx, config)
		Fail(ctx, failure)
		inner, call := Begin(From(ctx).Into(ctx), "call")
		call.Set("a", "b")
		call.SetAll("a", arguments)
		call.End(failure)
		_, err = InstalledClusters.RoundTrip(transport, plain) //nolint:bodyclose // There is none.
		if inner != ctx || err != nil {
			t.Error("the context is another one")
		}
	})).To(BeZero())
	fresh := &bootstrapv1.OpenshiftAssistedConfig{}
	Mark(ctx, fresh)
	g.Expect(fresh.Annotations).To(BeNil())
}

type counts struct{}

func (*counts) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// TestCollectorThatIsAway: passes do not wait for it, and neither does the end of a manager for longer than it may.
func TestCollectorThatIsAway(t *testing.T) {
	for name, address := range map[string]func(*testing.T) string{
		"refuses":       func(*testing.T) string { return "http://127.0.0.1:1" },
		"never answers": silence,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(EndpointVariable, address(t))
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
			for _, timeout := range []string{"OTEL_BSP_EXPORT_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"} {
				t.Setenv(timeout, strconv.FormatInt(time.Hour.Milliseconds(), 10)) // The manager's own patience ends it, however late that is seen.
			}
			ctx, flush := setup(t.Context(), "manager", "v1", logr.Discard(), 50*time.Millisecond)
			r := Passes(ctx, named("c"), nothing)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 10_000 {
					_, _ = r.Reconcile(ctx, request)
				}
			}()
			g.Eventually(done, time.Minute).Should(BeClosed())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				flush()
			}()
			g.Eventually(ended, time.Minute).Should(BeClosed())
		})
	}
}

// silence is a server that takes connections and never says anything.
func silence(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(listener.Close()).To(Succeed()) })
	return "http://" + listener.Addr().String()
}

// TestPanic: a pass that panics has a span, without the value, and panics.
func TestPanic(t *testing.T) {
	g, c := NewWithT(t), startCollector(t)
	t.Setenv(EndpointVariable, c.address)
	ctx, flush := Setup(t.Context(), "manager", "v1", logr.Discard())
	r := Passes(ctx, named("c"), reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { panic(token) }))
	g.Expect(func() { _, _ = r.Reconcile(t.Context(), request) }).To(PanicWith(token))
	flush()
	g.Expect(c.spans()).To(HaveLen(1))
	g.Expect(values(c.spans()[0].Attributes)).To(HaveKeyWithValue(ResultAttribute, ResultPanic))
	g.Expect(fmt.Sprint(c.spans())).NotTo(ContainSubstring("eyJ"))
}

// TestNotes: a note that somebody has made stays and is linked to, and what is no note is none.
func TestNotes(t *testing.T) {
	for note, linked := range map[string]string{
		"": "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "0af7651916cd43dd8448eb211c80319c", "nonsense": "",
	} {
		t.Run(note, func(t *testing.T) {
			g, c := NewWithT(t), startCollector(t)
			t.Setenv(EndpointVariable, c.address)
			ctx, flush := Setup(t.Context(), "manager", "v1", logr.Discard())
			config := &bootstrapv1.OpenshiftAssistedConfig{}
			config.Annotations = map[string]string{bootstrapv1.TraceAnnotation: note}
			var own string
			_, err := Passes(ctx, named("c"), reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				own = trace.SpanContextFromContext(ctx).TraceID().String()
				Link(ctx, config)
				Mark(ctx, config)
				return reconcile.Result{}, nil
			})).Reconcile(t.Context(), request)
			g.Expect(err).NotTo(HaveOccurred())
			flush()
			if note == "" {
				g.Expect(config.Annotations[bootstrapv1.TraceAnnotation]).To(ContainSubstring(own))
			} else {
				g.Expect(config.Annotations[bootstrapv1.TraceAnnotation]).To(Equal(note))
			}
			g.Expect(values(c.spans()[0].Attributes)[MachineAttribute]).To(Equal(linked))
			g.Expect(c.spans()[0].Links).To(HaveLen(len(linked) / 32))
		})
	}
}
