// SPDX-License-Identifier: Apache-2.0

// Package tracing tells an OpenTelemetry collector what the managers do: a span for each pass of a controller, and below it one for each
// call to a program that is no API server of the management cluster. Who has no collector has nothing of it: no goroutine, no connection,
// no annotation, and no allocation in a pass. Texts of errors lose what may be a credential before they become part of a span.
package tracing
