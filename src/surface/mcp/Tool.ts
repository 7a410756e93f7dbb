import { HttpServerResponse } from "@effect/platform"
import type { CallToolResult, Tool as ListedTool, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js"
import { Cause, type Duration, Effect, type ParseResult, Predicate, Schema } from "effect"
import { requirePermission } from "../../identity/AuthenticationLive.ts"
import { isWebhookPermission, type Permission } from "../../identity/keys/Permissions.ts"
import { Principal, type PrincipalShape } from "../../identity/Principal.ts"
import { boundedRefusals, refusal } from "../../platform/bounds/Refusals.ts"
import {
  type ApiError,
  errorBody,
  InternalError,
  isApiError,
  retrySeconds,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { errorAttributes } from "../../platform/errors/ProviderAnswer.ts"
import { noFields, RequestId } from "../../platform/kit/Request.ts"
import { annotateRequest, annotateSpan } from "../../platform/telemetry/Spans.ts"
import { type ObjectSchema, objectSchema } from "./JsonSchema.ts"

type Listed = ListedTool & { readonly inputSchema: ObjectSchema; readonly outputSchema: ObjectSchema }

export interface Tool {
  readonly name: string
  /** Created on first use: a process without agents creates no JSON Schemas of tools. */
  readonly listed: Listed
  readonly input: Schema.Schema.AnyNoContext
  /** The permission that a call needs, the same as its operation of the HTTP API. */
  readonly permission: Permission
  /**
   * Calls it with arguments as received. A refusal is an answer too: `isError`, with the documented
   * `{error, code, fields, requestId}` as its text (contract 12.1).
   */
  readonly call: (args: unknown) => Effect.Effect<CallToolResult, never, Principal>
}

export interface ToolDefinition<A, I, B, J> {
  readonly name: string
  readonly title: string
  /** For the model that chooses among tools: what it does, when to use it, what to know about the answer. */
  readonly description: string
  readonly permission: Permission
  readonly annotations: ToolAnnotations
  readonly input: Schema.Schema<A, I>
  readonly output: Schema.Schema<B, J>
  /** The JSON Schema of the output, if it says more than `output`. */
  readonly outputSchema?: ObjectSchema
  /** Returns the output, or the response of an idempotent operation, whose body is the encoded output. */
  readonly run: (
    principal: PrincipalShape,
    input: A
  ) => Effect.Effect<B | HttpServerResponse.HttpServerResponse, ApiError>
}

/** No arguments. The default JSON Schema of a struct without fields would accept anything. */
export const NoArguments = noFields("is unknown: this tool takes no arguments").annotations({
  jsonSchema: { type: "object", properties: {}, required: [], additionalProperties: false }
})

const answered = (json: unknown, replayed = false): CallToolResult => ({
  content: [{ type: "text", text: JSON.stringify(json) }],
  ...(Predicate.isRecord(json) ? { structuredContent: json } : {}),
  // A tool's answer has no headers
  ...(replayed ? { _meta: { "connected-payments/replayed": true } } : {})
})

const refused = (text: string, retryAfter: Duration.Duration | null = null): CallToolResult => ({
  isError: true,
  content: [{ type: "text", text }],
  // A tool's answer has no `Retry-After` header
  ...(retryAfter === null ? {} : { _meta: { "connected-payments/retryAfterSeconds": retrySeconds(retryAfter) } })
})

/**
 * Records a refusal, which is not an HTTP failure, as attributes of the tool's span, the request's span and the
 * request's log line.
 */
const noteRefusal = (attributes: Readonly<Record<string, string>>): Effect.Effect<void> =>
  Effect.zipRight(annotateSpan(attributes), annotateRequest(attributes))

const codeOf = Schema.decodeUnknown(Schema.parseJson(Schema.Struct({ code: Schema.String })))

/**
 * The answer of the first call with the same key, or of this one: byte for byte as HTTP sends it, also for refusals.
 */
const fromResponse = Effect.fnUntraced(function* (response: HttpServerResponse.HttpServerResponse) {
  const text = yield* Effect.promise(() => HttpServerResponse.toWeb(response).text())
  if (response.status < 400) return answered(JSON.parse(text), response.headers["idempotent-replayed"] === "true")
  yield* noteRefusal({ "api.error.code": (yield* Effect.orDie(codeOf(text))).code })
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
    yield* noteRefusal(errorAttributes(error))
    return refused(JSON.stringify(errorBody(error, yield* RequestId)), error.retryAfter)
  })
}

/** Creates a tool, which checks the permission, then the arguments, runs and encodes its output. */
export const makeTool = <A, I, B, J>(definition: ToolDefinition<A, I, B, J>): Tool => {
  const { annotations, description, input, name, output, permission, run, title } = definition
  const decode = Schema.decodeUnknown(input, { errors: "all", onExcessProperty: "error" })
  const encode = Schema.encode(output)
  let listed: Listed | undefined
  const makeListed = (): Listed => ({
    name,
    title,
    description: `${description} Needs the ${isWebhookPermission(permission) ? "scope" : "permission"} ${permission}.`,
    inputSchema: objectSchema(input, { open: false }),
    outputSchema: definition.outputSchema ?? objectSchema(output, { open: true }),
    annotations: { title, ...annotations }
  })
  return {
    name,
    get listed() {
      listed ??= makeListed()
      return listed
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
