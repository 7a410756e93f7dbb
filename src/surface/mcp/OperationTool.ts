import { hash } from "node:crypto"
import { HttpServerResponse, OpenApi } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import type { ToolAnnotations } from "@modelcontextprotocol/sdk/types.js"
import { Context, Effect, Option, Predicate, Schema, SchemaAST, String as Str, Struct } from "effect"
import { Principal, type PrincipalShape } from "../../identity/Principal.ts"
import { Accounts } from "../../payments/Accounts.ts"
import { unsupportedOperations } from "../../payments/OwnProvider.ts"
import { Provider } from "../../payments/Provider.ts"
import { type ApiError, isApiError } from "../../platform/errors/Errors.ts"
import { KeyedHash } from "../../platform/kit/crypto/KeyedHash.ts"
import type { HandledGroup } from "../../platform/kit/Handlers.ts"
import { canonical, Idempotency } from "../../platform/kit/Idempotency.ts"
import { IdempotencyKey, optional } from "../../platform/kit/Request.ts"
import { operations } from "../contract/Api.ts"
import type { Operation as Declared } from "../contract/Operations.ts"
import { type ProviderResource, resourceOf } from "../contract/ProviderResources.ts"
import { type ObjectSchema, objectSchema } from "./JsonSchema.ts"
import { makeTool, NoArguments, type Tool } from "./Tool.ts"

/**
 * Tools built from operations of the HTTP API: the permission, the arguments with their bounds, the answer and the
 * descriptions come from the operation's declaration, and a call runs the same function as a request.
 */

/**
 * How a call without an `idempotencyKey` is treated: `derived` derives a key from the caller, the tool and the
 * arguments, so that the same call returns the first answer again for 24 hours; `new` executes every call.
 */
export type Repeats = "derived" | "new"

export interface OperationToolOptions {
  readonly name: string
  /**
   * For the model that chooses among tools; appended to the operation's description. Default: nothing, or of a page, how
   * to get the next one.
   */
  readonly advice?: string
  /** Replaces the operation's description, if that is about HTTP. */
  readonly description?: string
  readonly destructive?: boolean
  /** The name of the path's `id` among the arguments. Default: `id`. */
  readonly idName?: string
  /** Replaces the operation's title, for a tool that does only part of it. */
  readonly title?: string
  /** Replaces the declared body with a part of it. */
  readonly body?: Schema.Schema.AnyNoContext
  /** Replaces the declared answer. */
  readonly output?: Schema.Schema.AnyNoContext
  /** Whether a call reaches anything outside of this service. Default: yes. */
  readonly openWorld?: boolean
  /** Whether it only reads, although its arguments are sent in a body. Default: whether its method is GET. */
  readonly reads?: boolean
  /** For writes: whether repeating a call has no further effect. Default: whether `repeats` is `derived`. */
  readonly idempotent?: boolean
  /** Default: `new`. */
  readonly repeats?: Repeats
}

/** The context of an operation: its caller, and the services that it uses. */
type OperationContext = Principal | Accounts | Idempotency | SqlClient.SqlClient

type Operation = (request: never) => Effect.Effect<unknown, unknown, OperationContext>

type Fields = Readonly<Record<string, unknown>>

const full = {
  full: optional(
    Schema.Boolean.annotations({
      description: "true: with every field. Default: what it is for, amount, state and time"
    })
  )
}

const nextPage = "`has_more` says whether there is another page: pass the last id as `starting_after`."

const keyDescription: Readonly<Record<Repeats, string>> = {
  derived:
    "8 to 255 printable characters. Without it, the same call with the same arguments returns the first answer again for 24 hours and does nothing more. To do the same once more on purpose, send a new one.",
  new: "8 to 255 printable characters. Repeat a call whose answer you did not get with the same key and arguments: it returns the first answer again. Without it, each call counts as new."
}

/** Adds a description to a schema, and to its JSON Schema if that is written by hand. */
const described = (ast: SchemaAST.AST, description: string): SchemaAST.AST =>
  SchemaAST.annotations(ast, {
    [SchemaAST.DescriptionAnnotationId]: description,
    ...Option.match(SchemaAST.getJSONSchemaAnnotation(ast), {
      onNone: () => ({}),
      onSome: (written) => ({ [SchemaAST.JSONSchemaAnnotationId]: { ...written, description } })
    })
  })

/** A query parameter as a JSON field: `limit` is a number here, though it is text in a query. */
const jsonField = (field: SchemaAST.PropertySignature): readonly [string, Schema.Struct.Field] => {
  const { isOptional, name, type } = field
  const typed = SchemaAST.typeAST(type)
  const said = Option.orElse(SchemaAST.getDescriptionAnnotation(field), () => SchemaAST.getDescriptionAnnotation(type))
  const schema = Schema.make<unknown>(
    Option.match(said, {
      onNone: () => typed,
      onSome: (description) => described(typed, description)
    })
  )
  return [String(name), isOptional ? optional(schema) : schema]
}

/** The parameters of a query; an operation without any has a refinement that refuses all. */
const queryFields = ({ urlParamsSchema }: Declared["endpoint"]): Schema.Struct.Fields =>
  Option.match(urlParamsSchema, {
    onNone: () => ({}),
    onSome: ({ ast }) => (SchemaAST.isTypeLiteral(ast) ? Object.fromEntries(ast.propertySignatures.map(jsonField)) : {})
  })

const answers = ({ successSchema }: Declared["endpoint"], identifier: string): boolean =>
  Option.contains(SchemaAST.getIdentifierAnnotation(successSchema.ast), identifier)

const isPage = ({ successSchema: { ast } }: Declared["endpoint"]): boolean =>
  SchemaAST.isTypeLiteral(ast) && ast.propertySignatures.some(({ name }) => name === "has_more")

/** Whether it returns the provider's objects, of which the contract describes more than the schema. */
const isProviders = (endpoint: Declared["endpoint"]): boolean =>
  answers(endpoint, "ProviderPage") || answers(endpoint, "ProviderObject")

/** A provider's field in an answer. Also accepts null, so that no change at the provider makes an answer fail. */
const orNull = (field: unknown): object => {
  if (!Predicate.isRecord(field)) return {}
  const { type } = field
  return Predicate.isString(type) ? { ...field, type: [type, "null"] } : field
}

/** The JSON Schema of an answer: the provider's object with the fields in the contract, or a page of them. */
const answerSchema = (resource: ProviderResource | undefined, page: boolean): ObjectSchema => {
  const known = resource === undefined ? undefined : objectSchema(resource.schema, { open: true })
  const object: ObjectSchema = {
    type: "object",
    ...(Predicate.isString(known?.["description"]) ? { description: known["description"] } : {}),
    required: known?.required ?? [],
    properties: Object.fromEntries(
      Object.entries(known?.properties ?? {}).map(([name, field]) => [name, name === "id" ? field : orNull(field)])
    )
  }
  return page
    ? {
        type: "object",
        required: ["data", "has_more"],
        properties: { data: { type: "array", items: object }, has_more: { type: "boolean" } }
      }
    : object
}

/** Fields that are the same in all items of a page. */
const sameInAll: ReadonlySet<string> = new Set(["object", "livemode"])

const isEmpty = (value: unknown): boolean =>
  value === null || (typeof value === "object" && Object.keys(value).length === 0)

/**
 * A provider's object without fields that have no value. Objects within it keep only their own values, and below that
 * only ids.
 */
const compact = (value: unknown, depth = 0): unknown => {
  if (Array.isArray(value)) return value.map((item) => compact(item, depth))
  if (!Predicate.isRecord(value)) return value
  if (depth > 2) return value["id"]
  const entries = Object.entries(value).map(([name, part]) => [name, compact(part, depth + 1)] as const)
  return Object.fromEntries(
    entries.filter(([name, part]) => part !== undefined && !sameInAll.has(name) && !isEmpty(part))
  )
}

/** A page of the provider's objects, compact, with the fields in the contract alone if it knows them. */
const compactPage = (page: unknown, known?: ReadonlyArray<PropertyKey>): unknown => {
  const { data, has_more } = Predicate.isRecord(page) ? page : {}
  const items = Array.isArray(data) ? data.filter(Predicate.isRecord) : []
  return { has_more, data: items.map((item) => compact(known === undefined ? item : Struct.pick(item, ...known))) }
}

/** Returns the contract's declaration of an operation. Throws if it has no permission. */
const declarationOf = (group: string, operation: string) => {
  const found = operations.find((declared) => declared.group === group && declared.name === operation)
  if (found?.permission === undefined) {
    throw new TypeError(`${group}.${operation} is not an operation with a permission, so it can't be a tool`)
  }
  const { endpoint, permission } = found
  const said = <I>(tag: Context.Tag<I, string>): string =>
    Option.getOrElse(Context.getOption(endpoint.annotations, tag), () => "")
  return { endpoint, permission, title: said(OpenApi.Summary), description: said(OpenApi.Description) }
}

/** How many stored refusals of the same call are skipped; after that, the last one is the answer. */
const maxPassedOver = 10

/** The idempotency key of a call without one. Each refusal stored under a key makes the next call use a new one. */
export const derivedKey = (
  keyedHash: KeyedHash["Type"],
  { author }: Pick<PrincipalShape, "author">,
  { args, passedOver, tool }: { readonly tool: string; readonly args: Fields; readonly passedOver: number }
): string =>
  `mcp_${keyedHash(hash("sha256", JSON.stringify([author.kind, author.id, tool, canonical(args), passedOver]))).toString("base64url")}`

type Services = Context.Context<Exclude<OperationContext, Principal> | KeyedHash>

type Call = (principal: PrincipalShape, args: Fields, key: unknown) => Effect.Effect<unknown, ApiError>

/** Runs an operation with the arguments of a call, which the schemas of its request have already decoded. */
const makeCall =
  (
    services: Services,
    run: Operation,
    { idName, ids, query }: { readonly idName: string; readonly ids: Fields; readonly query: Fields }
  ): Call =>
  (principal, { idempotencyKey: _, ...fields }, key) => {
    const pick = (isMeant: (name: string) => boolean) =>
      Object.fromEntries(Object.entries(fields).filter(([name]) => isMeant(name)))
    const isId = (name: string) => Object.hasOwn(ids, name)
    const isParameter = (name: string) => Object.hasOwn(query, name)
    const pathIds = Object.entries(pick(isId)).map(([name, value]) => [name === idName ? "id" : name, value])
    const request = {
      path: { organizationId: principal.organizationId, ...Object.fromEntries(pathIds) },
      urlParams: pick(isParameter),
      payload: pick((name) => !isId(name) && !isParameter(name)),
      headers: { "idempotency-key": key }
    }
    return run(request as never).pipe(
      Effect.provide(services),
      Effect.provideService(Principal, principal),
      // The API as a whole declares the platform's decode error, which no handler raises
      Effect.catchAll((error) => (isApiError(error) ? Effect.fail(error) : Effect.die(error)))
    )
  }

/**
 * Calls under derived keys. Starts with the last stored key. The refusals before it are older: starting with the first
 * key would repeat the operation as soon as that key expires.
 */
const makeRepeatable = (services: Services, tool: string, call: Call) => {
  const keyOf = (principal: PrincipalShape, args: Fields, passedOver: number) =>
    derivedKey(Context.get(services, KeyedHash), principal, { tool, args, passedOver })
  const callFrom = (principal: PrincipalShape, args: Fields, passedOver: number): ReturnType<Call> =>
    Effect.flatMap(call(principal, args, keyOf(principal, args, passedOver)), (result) =>
      HttpServerResponse.isServerResponse(result) && result.status >= 400 && passedOver < maxPassedOver
        ? callFrom(principal, args, passedOver + 1)
        : Effect.succeed(result)
    )
  return (principal: PrincipalShape, args: Fields) => {
    const keys = Array.from({ length: maxPassedOver + 1 }, (_, passedOver) => keyOf(principal, args, passedOver))
    return Effect.flatMap(Context.get(services, Idempotency).kept(principal, keys), (kept) => {
      const last = keys.findLastIndex((key) => kept.has(key))
      return callFrom(principal, args, Math.max(0, last))
    })
  }
}

const annotationsOf = (
  { method }: Declared["endpoint"],
  { destructive = false, idempotent, openWorld: openWorldHint = true, reads, repeats }: OperationToolOptions
): ToolAnnotations =>
  (reads ?? method === "GET")
    ? { readOnlyHint: true, openWorldHint }
    : {
        readOnlyHint: false,
        destructiveHint: destructive,
        idempotentHint: idempotent ?? repeats === "derived",
        openWorldHint
      }

const operationTool =
  (services: Services) =>
  (group: string, operation: string, run: Operation, options: OperationToolOptions): Tool => {
    const { idName = "id", name, repeats = "new" } = options
    const { description, endpoint, permission, title: summary } = declarationOf(group, operation)
    const advice = options.advice ?? (isPage(endpoint) ? nextPage : "")
    const title = options.title ?? summary
    const resource = isProviders(endpoint) ? resourceOf(group, operation) : undefined
    const outputSchema = isProviders(endpoint) ? answerSchema(resource, isPage(endpoint)) : undefined
    const isList = isProviders(endpoint) && isPage(endpoint)
    const known = resource && SchemaAST.getPropertySignatures(resource.schema.ast).map((field) => field.name)
    const query = queryFields(endpoint)
    const ids = idFields(endpoint, idName)
    const call = makeCall(services, run, { idName, ids, query })
    const callRepeatable = makeRepeatable(services, name, call)
    return makeTool({
      name,
      title,
      description: [`${title}.`, options.description ?? description, advice].filter((said) => said !== "").join(" "),
      permission,
      annotations: annotationsOf(endpoint, options),
      input: inputOf(
        Option.orElse(Option.fromNullable(options.body), () => endpoint.payloadSchema),
        { ...ids, ...query, ...(isList ? full : {}) },
        Option.isSome(endpoint.headersSchema) ? repeats : undefined
      ),
      output: Schema.make<unknown, unknown>((options.output ?? endpoint.successSchema).ast),
      ...(outputSchema === undefined ? {} : { outputSchema }),
      run: (principal, { full, ...args }) =>
        args["idempotencyKey"] === undefined && repeats === "derived"
          ? callRepeatable(principal, args)
          : Effect.map(call(principal, args, args["idempotencyKey"]), (answer) =>
              isList && full !== true ? compactPage(answer, known) : answer
            )
    })
  }

/** The ids in a path, apart from the organization's, which is the caller's. */
const idFields = ({ pathSchema }: Declared["endpoint"], idName: string): Schema.Struct.Fields =>
  Option.match(pathSchema, {
    onNone: () => ({}),
    onSome: ({ ast }) =>
      Object.fromEntries(
        SchemaAST.getPropertySignatures(ast)
          .filter(({ name }) => name !== "organizationId")
          .map(jsonField)
          .map(([name, field]) => [name === "id" ? idName : name, field])
      )
  })

/** The arguments: the path's ids, the query's parameters, the body's fields and, for writes, the key. */
const inputOf = (
  payloadSchema: Option.Option<Schema.Schema.All>,
  parameters: Schema.Struct.Fields,
  repeats: Repeats | undefined
): Schema.Schema<Fields, unknown> => {
  const around = Schema.Struct({
    ...parameters,
    ...(repeats === undefined
      ? {}
      : { idempotencyKey: optional(IdempotencyKey.annotations({ description: keyDescription[repeats] })) })
  })
  if (Option.isSome(payloadSchema)) {
    return Schema.make(Schema.extend(Schema.make(around.ast), Schema.make(payloadSchema.value.ast)).ast)
  }
  return Schema.make(Object.keys(around.fields).length === 0 ? NoArguments.ast : around.ast)
}

const makeOperationTool = Effect.map(
  Effect.context<Accounts | Idempotency | KeyedHash | Provider | SqlClient.SqlClient>(),
  (context) => ({
    tool: operationTool(Context.pick(Accounts, Idempotency, KeyedHash, SqlClient.SqlClient)(context)),
    unsupported: unsupportedOperations(operations, Context.get(context, Provider))
  })
)

/** The tools of one operation: one that is only named, one that adds something, or several. */
type OperationTools = string | OperationToolOptions | ReadonlyArray<OperationToolOptions>

const optionsOf = (tools: OperationTools): ReadonlyArray<OperationToolOptions> => {
  if (typeof tools === "string") return [{ name: tools }]
  return "name" in tools ? [tools] : tools
}

/** The tools of a group's reads of the provider, by what they read: `list_disputes`, `get_dispute`, `get_balance`. */
const toolsOfReads = (group: string): Readonly<Record<string, string>> => {
  const objects = Str.camelToSnake(group)
  const usual: Readonly<Record<string, string>> = { list: `list_${objects}`, get: `get_${objects.replace(/s$/, "")}` }
  return Object.fromEntries(
    operations
      .filter((read) => read.group === group && read.method === "GET" && read.path.includes("/provider/"))
      .map(({ name }) => [name, usual[name] ?? `get_${Str.camelToSnake(name)}`])
  )
}

/**
 * Creates the tools of a group's operations, as far as the provider supports them, with the services that any of them needs
 * except its caller. Reads of the provider are tools also if they are not named.
 */
export const operationTools = <Operations extends Readonly<Record<string, Operation>>, E, R>(
  { group: { identifier }, handlers }: HandledGroup<{ readonly identifier: string }, Operations, E, R>,
  tools?: { readonly [Name in keyof Operations]?: OperationTools }
) =>
  Effect.zipWith(makeOperationTool, handlers, ({ tool, unsupported }, operations) =>
    Object.entries<OperationTools | undefined>({ ...toolsOfReads(identifier), ...tools }).flatMap(
      ([name, given = []]) => {
        const run = operations[name]
        return run === undefined || unsupported.has(`${identifier}.${name}`)
          ? []
          : optionsOf(given).map((options) => tool(identifier, name, run, options))
      }
    )
  )
