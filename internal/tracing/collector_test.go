// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// collector keeps what it is sent.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer

	address string

	mu    sync.Mutex
	got   []*tracev1.ResourceSpans
	heads []metadata.MD
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c := &collector{address: "http://" + listener.Addr().String()}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		NewWithT(t).Expect(<-done).To(Or(Succeed(), MatchError(grpc.ErrServerStopped))) // It may be stopped before it serves.
	})
	return c
}

// Export implements the service.
func (c *collector) Export(
	ctx context.Context, request *collectorv1.ExportTraceServiceRequest,
) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, request.GetResourceSpans()...)
	head, _ := metadata.FromIncomingContext(ctx)
	c.heads = append(c.heads, head)
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// spans are those that were sent, in their order.
func (c *collector) spans() []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var spans []*tracev1.Span
	for _, resource := range c.got {
		for _, scope := range resource.GetScopeSpans() {
			spans = append(spans, scope.GetSpans()...)
		}
	}
	return spans
}

// resource is what is said of the sender.
func (c *collector) resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return values(c.got[0].GetResource().GetAttributes())
}

func values(attributes []*commonv1.KeyValue) map[string]string {
	found := map[string]string{}
	for _, attribute := range attributes {
		switch value := attribute.GetValue().GetValue().(type) {
		case *commonv1.AnyValue_IntValue:
			found[attribute.GetKey()] = fmt.Sprint(value.IntValue)
		case *commonv1.AnyValue_DoubleValue:
			found[attribute.GetKey()] = fmt.Sprint(value.DoubleValue)
		default:
			found[attribute.GetKey()] = attribute.GetValue().GetStringValue()
		}
	}
	return found
}
