import protobuf from "protobufjs"

/**
 * OTLP's binary form, read by an independent library into the same shape as its JSON form. The messages are those of
 * OpenTelemetry's protocol, as far as tests look at them, under the numbers that the protocol gives their fields.
 */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message AnyValue {
    oneof value {
      string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
      ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7;
    }
  }
  message ArrayValue { repeated AnyValue values = 1; }
  message KeyValueList { repeated KeyValue values = 1; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Scope { string name = 1; string version = 2; }
  message Resource { repeated KeyValue attributes = 1; }

  message Traces { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; repeated Event events = 11; repeated Link links = 13; Status status = 15;
    fixed32 flags = 16;
  }
  message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
  message Link { bytes trace_id = 1; bytes span_id = 2; repeated KeyValue attributes = 4; fixed32 flags = 6; }
  message Status { string message = 2; int32 code = 3; }

  message Metrics { repeated ResourceMetrics resource_metrics = 1; }
  message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
  message ScopeMetrics { Scope scope = 1; repeated Metric metrics = 2; }
  message Metric {
    string name = 1; string unit = 3;
    oneof data { Points gauge = 5; Points sum = 7; HistogramPoints histogram = 9; }
  }
  message Points { repeated NumberPoint data_points = 1; }
  message NumberPoint { repeated KeyValue attributes = 7; oneof value { double as_double = 4; sfixed64 as_int = 6; } }
  message HistogramPoints { repeated HistogramPoint data_points = 1; }
  message HistogramPoint { repeated KeyValue attributes = 9; fixed64 count = 4; optional double sum = 5; }

  message Logs { repeated ResourceLogs resource_logs = 1; }
  message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; }
  message ScopeLogs { Scope scope = 1; repeated LogRecord log_records = 2; }
  message LogRecord {
    int32 severity_number = 2; string severity_text = 3; AnyValue body = 5; repeated KeyValue attributes = 6;
    bytes trace_id = 9; bytes span_id = 10;
  }
`)

const messages: Readonly<Record<string, string>> = {
  "/v1/traces": "Traces",
  "/v1/metrics": "Metrics",
  "/v1/logs": "Logs"
}

const ids = new Set(["traceId", "spanId", "parentSpanId"])

/** The JSON text of what was sent to one of the protocol's paths in its binary form. */
export const otlpJson = (path: string, bytes: Uint8Array): string => {
  const message = root.lookupType(messages[path] ?? "")
  const plain = message.toObject(message.decode(bytes), { longs: String, bytes: String, arrays: true })
  // JSON has ids in hexadecimal
  return JSON.stringify(plain, (name, value) =>
    ids.has(name) && typeof value === "string" ? Buffer.from(value, "base64").toString("hex") : value
  )
}
