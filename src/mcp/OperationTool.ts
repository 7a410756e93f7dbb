import { hash } from "node:crypto"
import { type HttpApiGroup, HttpServerResponse, OpenApi } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import type { ToolAnnotations } from "@modelcontextprotocol/sdk/types.js"
import { Context, Effect, Option, Predicate, Schema, SchemaAST } from "effect"
import { operations } from "../contract/Api.ts"
import type { Operation as Declared } from "../contract/Operations.ts"
import { type ProviderResource, resourceOf } from "../contract/ProviderResources.ts"
import { isApiError } from "../errors/Errors.ts"
import { Principal, type PrincipalShape } from "../identity/Principal.ts"
import type { OperationHandler, OperationName } from "../kit/Handlers.ts"
import { canonical, Idempotency } from "../kit/Idempotency.ts"
import { KeyedHash } from "../kit/KeyedHash.ts"
import { IdempotencyKey, optional } from "../kit/Request.ts"
import { Accounts } from "../provider/Accounts.ts"
import type { ObjectSchema } from "./JsonSchema.ts"
import { makeTool, NoArguments, type Tool } from "./Tool.ts"

/**
 * Tools made from operations of the HTTP API: the permission, the arguments with their bounds, the answer and what they
 * say of themselves come from the operation's declaration, and a call runs the same function as a request.
 */

/**
 * What a call without an `idempotencyKey` is: `derived` takes a key from the caller, the tool and the arguments, so that
 * the same call returns the first answer again for 24 hours; `new` counts every call.
 */
export type Repeats = "derived" | "new"

/** What a tool adds to the operation that it stands for. */
export interface OperationToolOptions {
  readonly name: string
  /** For the model that chooses among tools, after what the operation says of itself. */
  readonly advice?: string
  /** In place of the operation's own description, where that speaks of HTTP. */
  readonly description?: string
  readonly destructive?: boolean
  /** The name of the path's `id` among the arguments. Default: `id`. */
  readonly idName?: string
  /** In place of the operation's own title, for a tool that does a part of what it does. */
  readonly title?: string
  /** In place of the declared body: a part of it. */
  readonly body?: Schema.Schema.AnyNoContext
  /** In place of the declared answer. */
  readonly output?: Schema.Schema.AnyNoContext
  /** Whether a call reaches anything outside of this service. Default: yes. */
  readonly openWorld?: boolean
  /** Whether the same call again changes nothing more. Default: for what reads, and where repeats are derived. */
  readonly idempotent?: boolean
  /** Default: `new`. */
  readonly repeats?: Repeats
}

/** What an operation may need of its surroundings: its caller, and the services around it. */
type OperationContext = Principal | Accounts | Idempotency | SqlClient.SqlClient

type Fields = Readonly<Record<string, unknown>>

const keyDescription: Readonly<Record<Repeats, string>> = {
  derived:
    "8 to 255 printable characters. Without it, the same call with the same arguments returns the first answer again for 24 hours and does nothing more. To do the same once more on purpose, send a new one.",
  new: "8 to 255 printable characters. Repeat a call whose answer you did not get with the same key and arguments: it returns the first answer again. Without it, each call counts as new."
}

/** A schema with a description, also where its JSON Schema is written by hand. */
const described = (ast: SchemaAST.AST, description: string): SchemaAST.AST =>
  SchemaAST.annotations(ast, {
    [SchemaAST.DescriptionAnnotationId]: description,
    ...Option.match(SchemaAST.getJSONSchemaAnnotation(ast), {
      onNone: () => ({}),
      onSome: (written) => ({ [SchemaAST.JSONSchemaAnnotationId]: { ...written, description } })
    })
  })

/** What a schema of parameters accepts, in JSON types: `limit` is a number, though in a query it is text. */
const jsonField = ({ isOptional, name, type }: SchemaAST.PropertySignature): readonly [string, Schema.Struct.Field] => {
  const typed = SchemaAST.typeAST(type)
  const schema = Schema.make<unknown>(
    Option.match(SchemaAST.getDescriptionAnnotation(type), {
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

const isPage = (endpoint: Declared["endpoint"]): boolean => answers(endpoint, "ProviderPage")

/** Whether it answers the provider's objects, of which the contract describes more than the schema says. */
const isProviders = (endpoint: Declared["endpoint"]): boolean => isPage(endpoint) || answers(endpoint, "ProviderObject")

/** A field of the provider's as an answer shows it: null is taken too, so that no change there makes an answer fail. */
const orNull = (field: unknown): object => {
  if (!Predicate.isRecord(field)) return {}
  const { type } = field
  return Predicate.isString(type) ? { ...field, type: [type, "null"] } : field
}

/** The JSON Schema of an answer: the provider's object with the fields that the contract describes, or a page of them. */
const answerSchema = (resource: ProviderResource | undefined, page: boolean): ObjectSchema => {
  const { description, properties, required } = resource?.document ?? {}
  const object: ObjectSchema = {
    type: "object",
    ...(Predicate.isString(description) ? { description } : {}),
    required: Array.isArray(required) ? required.map(String) : [],
    properties: Predicate.isRecord(properties)
      ? Object.fromEntries(
          Object.entries(properties).map(([name, field]) => [name, name === "id" ? Object(field) : orNull(field)])
        )
      : {}
  }
  return page
    ? {
        type: "object",
        required: ["data", "has_more"],
        properties: { data: { type: "array", items: object }, has_more: { type: "boolean" } }
      }
    : object
}

/** Finds what the contract declares of an operation. */
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

/** How many stored refusals of the same call are passed over until the last one is the answer. */
const maxPassedOver = 10

/** The idempotency key of a call that brought none. Each refusal that is kept under a key begins a new one. */
export const derivedKey = (
  keyedHash: KeyedHash["Type"],
  { author }: Pick<PrincipalShape, "author">,
  tool: string,
  args: Fields,
  passedOver: number
): string =>
  `mcp_${keyedHash(hash("sha256", JSON.stringify([author.kind, author.id, tool, canonical(args), passedOver]))).toString("base64url")}`

const operationTool =
  (services: Context.Context<Exclude<OperationContext, Principal> | KeyedHash>) =>
  <Group extends HttpApiGroup.HttpApiGroup.Any & { readonly identifier: string }, Name extends OperationName<Group>>(
    { identifier }: Group,
    operation: Name,
    run: OperationHandler<Group, Name, OperationContext>,
    options: OperationToolOptions
  ): Tool => {
    const keyedHash = Context.get(services, KeyedHash)
    const {
      advice,
      destructive = false,
      idName = "id",
      name,
      openWorld: openWorldHint = true,
      repeats = "new"
    } = options
    const { description, endpoint, permission, title: summary } = declarationOf(identifier, operation)
    const title = options.title ?? summary
    const reads = endpoint.method === "GET"
    const query = queryFields(endpoint)
    const ids = idFields(endpoint, idName)
    const annotations: ToolAnnotations = reads
      ? { readOnlyHint: true, openWorldHint }
      : {
          readOnlyHint: false,
          destructiveHint: destructive,
          idempotentHint: options.idempotent ?? repeats === "derived",
          openWorldHint
        }
    const call = (principal: PrincipalShape, { idempotencyKey: _, ...fields }: Fields, key: unknown) => {
      const pick = (isMeant: (name: string) => boolean) =>
        Object.fromEntries(Object.entries(fields).filter(([name]) => isMeant(name)))
      const isId = (name: string) => Object.hasOwn(ids, name)
      const isParameter = (name: string) => Object.hasOwn(query, name)
      // What decoded the arguments are the schemas of the operation's own request
      const request = {
        path: {
          organizationId: principal.organizationId,
          ...pick(isId),
          id: fields[idName]
        },
        urlParams: pick(isParameter),
        payload: pick((name) => !isId(name) && !isParameter(name)),
        headers: { "idempotency-key": key }
      } as Parameters<OperationHandler<Group, Name>>[0]
      return run(request).pipe(
        Effect.provide(services),
        Effect.provideService(Principal, principal),
        // The API as a whole declares the platform's decode error, which no handler raises
        Effect.catchAll((error) => (isApiError(error) ? Effect.fail(error) : Effect.die(error)))
      )
    }
    const callOnce = (principal: PrincipalShape, args: Fields, passedOver: number): ReturnType<typeof call> =>
      Effect.flatMap(call(principal, args, derivedKey(keyedHash, principal, name, args, passedOver)), (result) =>
        HttpServerResponse.isServerResponse(result) && result.status >= 400 && passedOver < maxPassedOver
          ? callOnce(principal, args, passedOver + 1)
          : Effect.succeed(result)
      )
    /**
     * Begins with the last key that is kept. The refusals before it are older: were the first one looked at, what followed
     * it would be done once more as soon as that one is forgotten.
     */
    const callFromLast = (principal: PrincipalShape, args: Fields) => {
      const keys = Array.from({ length: maxPassedOver + 1 }, (_, passedOver) =>
        derivedKey(keyedHash, principal, name, args, passedOver)
      )
      return Effect.flatMap(Context.get(services, Idempotency).kept(principal, keys), (kept) =>
        callOnce(
          principal,
          args,
          Math.max(
            0,
            keys.findLastIndex((key) => kept.has(key))
          )
        )
      )
    }
    return makeTool({
      name,
      title,
      description: [`${title}.`, options.description ?? description, advice ?? ""]
        .filter((said) => said !== "")
        .join(" "),
      permission,
      annotations,
      input: inputOf(
        Option.orElse(Option.fromNullable(options.body), () => endpoint.payloadSchema),
        { ...ids, ...query },
        Option.isSome(endpoint.headersSchema) ? repeats : undefined
      ),
      output: Schema.make<unknown, unknown>((options.output ?? endpoint.successSchema).ast),
      ...(isProviders(endpoint)
        ? { outputSchema: answerSchema(resourceOf(identifier, operation), isPage(endpoint)) }
        : {}),
      run: (principal, args) =>
        args["idempotencyKey"] === undefined && repeats === "derived"
          ? callFromLast(principal, args)
          : call(principal, args, args["idempotencyKey"])
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

/** Creates tools of operations with the services that any of them needs, apart from its caller. */
export const makeOperationTool = Effect.map(
  Effect.context<Accounts | Idempotency | KeyedHash | SqlClient.SqlClient>(),
  (context) => operationTool(Context.pick(Accounts, Idempotency, KeyedHash, SqlClient.SqlClient)(context))
)
