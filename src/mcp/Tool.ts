import { HttpServerResponse } from "@effect/platform"
import type { CallToolResult, Tool as ListedTool, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js"
import { Cause, type Duration, Effect, type ParseResult, Predicate, Schema } from "effect"
import { boundedRefusals, refusal } from "../bounds/Refusals.ts"
import {
  type ApiError,
  errorBody,
  InternalError,
  isApiError,
  retrySeconds,
  ValidationFailed
} from "../errors/Errors.ts"
import { requirePermission } from "../identity/Access.ts"
import type { WebhookPermission } from "../identity/keys/Permissions.ts"
import { Principal, type PrincipalShape } from "../identity/Principal.ts"
import { RequestId } from "../kit/Request.ts"
import { annotateRequest, annotateSpan } from "../telemetry/Spans.ts"
import { type ObjectSchema, objectSchema } from "./JsonSchema.ts"

/** A tool as the tool server lists and calls it. */
export interface Tool {
  readonly listed: ListedTool & { readonly inputSchema: ObjectSchema; readonly outputSchema: ObjectSchema }
  /** What judges the arguments of a call. */
  readonly input: Schema.Schema.AnyNoContext
  /** The permission that a call needs, as its operation of the HTTP API does. */
  readonly permission: WebhookPermission
  /**
   * Calls it with arguments as they came. A refusal is an answer too: `isError`, with the documented
   * `{error, code, fields, requestId}` as its text (contract 12.1).
   */
  readonly call: (args: unknown) => Effect.Effect<CallToolResult, never, Principal>
}

/** What a tool is made of. */
export interface ToolDefinition<A, I, B, J> {
  readonly name: string
  readonly title: string
  /** For the model that chooses among tools: what it does, when to use it, what to know of the answer. */
  readonly description: string
  readonly permission: WebhookPermission
  readonly annotations: ToolAnnotations
  readonly input: Schema.Schema<A, I>
  readonly output: Schema.Schema<B, J>
  /** Answers the output, or the response of an operation that repeats safely, whose body is the output as it goes on the wire. */
  readonly run: (
    principal: PrincipalShape,
    input: A
  ) => Effect.Effect<B | HttpServerResponse.HttpServerResponse, ApiError>
}

const answered = (json: unknown): CallToolResult => ({
  content: [{ type: "text", text: JSON.stringify(json) }],
  ...(Predicate.isRecord(json) ? { structuredContent: json } : {})
})

const refused = (text: string, retryAfter: Duration.Duration | null = null): CallToolResult => ({
  isError: true,
  content: [{ type: "text", text }],
  // A tool's answer has no header for it
  ...(retryAfter === null ? {} : { _meta: { "connected-payments/retryAfterSeconds": retrySeconds(retryAfter) } })
})

/** A refusal is no failure of HTTP's: the tool's span, the request's and its log line say it by its code. */
const noteRefusal = (code: string): Effect.Effect<void> =>
  Effect.zipRight(annotateSpan({ "api.error.code": code }), annotateRequest({ "api.error.code": code }))

/** The code of a refusal that an operation answered before. */
const codeOf = Schema.decodeUnknown(Schema.parseJson(Schema.Struct({ code: Schema.String })))

/** The answer of the first call with the same key, or of this one: byte for byte as HTTP gives it, refusals included. */
const fromResponse = Effect.fnUntraced(function* (response: HttpServerResponse.HttpServerResponse) {
  const text = yield* Effect.promise(() => HttpServerResponse.toWeb(response).text())
  if (response.status < 400) return answered(JSON.parse(text))
  yield* noteRefusal((yield* Effect.orDie(codeOf(text))).code)
  return refused(text)
})

const invalidArguments = ({ issue }: ParseResult.ParseError): ValidationFailed =>
  new ValidationFailed(refusal(boundedRefusals(issue), "The object of the arguments"))

const fromFailure = (cause: Cause.Cause<ApiError>): Effect.Effect<CallToolResult> => {
  if (Cause.isInterruptedOnly(cause)) {
    return Effect.interrupt
  }
  return Effect.gen(function* () {
    const failure = Cause.squash(cause)
    const error = isApiError(failure) ? failure : new InternalError({ cause: failure })
    if (error._tag === "InternalError") {
      yield* Effect.logError("A tool failed by a defect", cause)
    } else if (error.status >= 500) {
      yield* Effect.logWarning(`A tool was answered ${error.code}`, error.cause)
    }
    yield* noteRefusal(error.code)
    return refused(JSON.stringify(errorBody(error, yield* RequestId)), error.retryAfter)
  })
}

/** A tool of these parts: checks the permission, then the arguments, runs it and encodes what it answers. */
export const makeTool = <A, I, B, J>(definition: ToolDefinition<A, I, B, J>): Tool => {
  const { annotations, description, input, name, output, permission, run, title } = definition
  const decode = Schema.decodeUnknown(input, { errors: "all", onExcessProperty: "error" })
  const encode = Schema.encode(output)
  return {
    listed: {
      name,
      title,
      description: `${description} Needs the scope ${permission}.`,
      inputSchema: objectSchema(input, { open: false }),
      outputSchema: objectSchema(output, { open: true }),
      annotations: { title, ...annotations }
    },
    input,
    permission,
    call: (args) =>
      Effect.gen(function* () {
        const principal = yield* Principal
        yield* annotateRequest({ "gen_ai.tool.name": name })
        yield* requirePermission(principal, permission)
        const decoded = yield* Effect.mapError(decode(args), invalidArguments)
        const result = yield* run(principal, decoded)
        return yield* HttpServerResponse.isServerResponse(result)
          ? fromResponse(result)
          : Effect.map(Effect.orDie(encode(result)), answered)
      }).pipe(Effect.catchAllCause(fromFailure), Effect.withSpan(`tools/call ${name}`))
  }
}
