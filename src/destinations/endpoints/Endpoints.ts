import { SqlClient } from "@effect/sql"
import { Context, type Duration, Effect, Either, Layer, Option, Redacted } from "effect"
import { newSigningSecret, secretContext, standardWebhooksSecretOf } from "../../engine/attempts/Signing.ts"
import {
  addressPolicyFor,
  type DestinationSettings,
  DnsResolver,
  destinationRules,
  parseDestination,
  resolveDestination
} from "../../engine/transport/DestinationUrl.ts"
import { EventCatalog, subscriptionProblem } from "../../events/EventCatalog.ts"
import { type Filters, parseFilters } from "../../events/Filters.ts"
import type { PrincipalShape, Tenant } from "../../identity/Principal.ts"
import { refusal } from "../../platform/bounds/Refusals.ts"
import {
  DestinationRejected,
  DestinationUnresolvable,
  EndpointLimitReached,
  IntegrationFilterInvalid,
  IntegrationFilterUnknown,
  type RateLimitExceeded,
  type ResourceNotFound,
  type ServiceUnavailable,
  unknownCursor,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../../platform/kit/Audit.ts"
import { Cipher } from "../../platform/kit/crypto/Cipher.ts"
import { housekeepingLayer } from "../../platform/kit/Housekeeping.ts"
import { EndpointId, newId } from "../../platform/kit/Ids.ts"
import { defaultPageSize } from "../../platform/kit/Request.ts"
import { SlowReads } from "../../platform/kit/SlowReads.ts"
import { batchSize, inBatches } from "../../platform/storage/Batches.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import type {
  CreatedEndpoint,
  CreateEndpoint,
  Endpoint,
  EndpointList,
  ListSkipped,
  RotatedEndpoint,
  SkippedEventList,
  UpdateEndpoint
} from "./Api.ts"
import { makeEndpointsRepo, noEndpoint } from "./EndpointsRepo.ts"

export interface EndpointsOptions extends DestinationSettings {
  /** Endpoints per organization and environment. */
  readonly limit: number
  /** How long skipped events can be read: as long as deliveries. */
  readonly keepFor: Duration.Duration
}

export type CreateEndpointError =
  | EndpointLimitReached
  | DestinationRejected
  | DestinationUnresolvable
  | IntegrationFilterUnknown
  | IntegrationFilterInvalid
  | ValidationFailed
  | ServiceUnavailable

export interface NewEndpoint extends Omit<CreateEndpoint, "events"> {
  readonly events: ReadonlyArray<string>
}

export interface EndpointChange extends Omit<UpdateEndpoint, "events"> {
  readonly events?: ReadonlyArray<string>
}

const judgeFilters = (
  filters: Readonly<Record<string, unknown>>
): Effect.Effect<Filters, IntegrationFilterUnknown | IntegrationFilterInvalid> =>
  Either.match(parseFilters(filters), {
    onLeft: ({ reason, reasons }): Effect.Effect<never, IntegrationFilterUnknown | IntegrationFilterInvalid> =>
      reason === "unknown"
        ? new IntegrationFilterUnknown(refusal(reasons))
        : new IntegrationFilterInvalid(refusal(reasons)),
    onRight: (judged) => Effect.succeed(judged)
  })

/** Webhook destinations of organizations (contract 5.1). */
export class Endpoints extends Context.Tag("connected-payments/endpoints/Endpoints")<
  Endpoints,
  {
    /** Creates an active endpoint after checking and resolving its destination. The secret is returned only here. */
    readonly create: (
      principal: PrincipalShape,
      params: NewEndpoint
    ) => Effect.Effect<CreatedEndpoint, CreateEndpointError>
    /** `create` in two steps: checks the destination, and returns the rest, to be run in a transaction. */
    readonly prepareCreate: (
      principal: PrincipalShape,
      params: NewEndpoint
    ) => Effect.Effect<Effect.Effect<CreatedEndpoint, CreateEndpointError>, CreateEndpointError>
    readonly list: (tenant: Tenant) => Effect.Effect<EndpointList, RateLimitExceeded | ServiceUnavailable>
    readonly get: (tenant: Tenant, id: EndpointId) => Effect.Effect<Endpoint, ResourceNotFound | ServiceUnavailable>
    /** Changes an endpoint; queued deliveries keep their URL and secrets. Filters are replaced as a whole. */
    readonly update: (
      principal: PrincipalShape,
      id: EndpointId,
      change: EndpointChange
    ) => Effect.Effect<
      Endpoint,
      ResourceNotFound | IntegrationFilterUnknown | IntegrationFilterInvalid | ValidationFailed | ServiceUnavailable
    >
    /**
     * Deletes an endpoint for good. The same transaction erases its secrets and fails a thousand of its queued
     * deliveries with `endpoint_deleted`; the others are not claimed, and `endDeleted` fails them. An attempt under way
     * is recorded, and its delivery counts as delivered if it succeeds. The history is kept.
     */
    readonly delete: (
      principal: PrincipalShape,
      id: EndpointId
    ) => Effect.Effect<void, ResourceNotFound | ServiceUnavailable>
    /**
     * Issues a new signing secret, which is returned only here (contract 8.6). The previous one signs new events for 24
     * more hours, together with the new one, and deliveries queued before for up to 72 hours. After another rotation
     * within the 24 hours, the newest secret and its predecessor sign new events. Of more than 64 replaced secrets, the
     * oldest are erased, and deliveries still queued under them are signed with the current one.
     */
    readonly rotateSecret: (
      principal: PrincipalShape,
      id: EndpointId
    ) => Effect.Effect<RotatedEndpoint, ResourceNotFound | ServiceUnavailable>
    /** Newest first, as long as payloads are kept; also for a deleted endpoint. */
    readonly listSkipped: (
      tenant: Tenant,
      id: EndpointId,
      query: ListSkipped
    ) => Effect.Effect<SkippedEventList, ResourceNotFound | ValidationFailed | ServiceUnavailable>
    /** Erases rotated secrets that no longer sign anything. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
    /** Fails the deliveries still queued for deleted endpoints, in batches. */
    readonly endDeleted: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (
    options: EndpointsOptions
  ): Layer.Layer<Endpoints, never, SqlClient.SqlClient | Cipher | DnsResolver | SlowReads> =>
    Layer.effect(Endpoints, make(options))
}

const shownSecrets = (secret: Redacted.Redacted) => {
  const signingSecret = Redacted.value(secret)
  return { signingSecret, standardWebhooksSecret: standardWebhooksSecretOf(signingSecret) }
}

const makeParts = Effect.fnUntraced(function* (options: EndpointsOptions) {
  const sql = yield* SqlClient.SqlClient
  const cipher = yield* Cipher
  const resolver = yield* DnsResolver
  const repo = yield* makeEndpointsRepo
  const audit = yield* makeAudit
  const catalog = yield* EventCatalog
  const slowReads = yield* SlowReads
  const record = (principal: PrincipalShape, action: Extract<AuditAction, `endpoint.${string}`>, id: EndpointId) =>
    audit({ ...principal, action, targetId: id })
  return { options, sql, cipher, resolver, repo, audit, catalog, slowReads, record }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeNewSecret = ({ cipher }: Parts) =>
  Effect.fnUntraced(function* (tenant: Tenant) {
    const secretId = yield* newId
    const signingSecret = newSigningSecret()
    return { secretId, signingSecret, encrypted: yield* cipher.encrypt(signingSecret, secretContext(tenant, secretId)) }
  })

const makeJudge = ({ catalog, options, resolver }: Parts) => {
  const judgeSubscription = (types: ReadonlyArray<string>): Effect.Effect<void, ValidationFailed> => {
    const problem = subscriptionProblem(catalog, types)
    return problem === undefined ? Effect.void : new ValidationFailed({ message: problem, fields: ["events"] })
  }

  const judgeDestination = Effect.fnUntraced(
    function* (tenant: Tenant, text: string) {
      const rules = destinationRules(options, tenant)
      const url = yield* parseDestination(text, rules)
      yield* resolveDestination(url.hostname, addressPolicyFor(url.hostname, rules)).pipe(
        Effect.provideService(DnsResolver, resolver)
      )
      return url.href
    },
    Effect.catchTags({
      DestinationRefusal: (refusal) => new DestinationRejected({ message: refusal.message, fields: ["url"] }),
      DestinationUnresolvable: (cause) =>
        new DestinationUnresolvable({ message: cause.message, fields: ["url"], cause })
    })
  )

  return { judgeSubscription, judgeDestination }
}

const makeLookup = ({ repo }: Parts) => {
  const orNotFound = <A>(found: Option.Option<A>): Effect.Effect<A, ResourceNotFound> =>
    Option.match(found, { onNone: noEndpoint, onSome: Effect.succeed })

  /** Locks the endpoint until the transaction ends. */
  const requireLocked = (tenant: Tenant, id: EndpointId) =>
    Effect.filterOrFail(
      repo.lock(tenant, id),
      Option.exists(({ deleted }) => !deleted),
      noEndpoint
    )

  return { orNotFound, requireLocked }
}

const makePrepareCreate = (
  { options, record, repo, sql }: Parts,
  { judgeDestination, judgeSubscription }: ReturnType<typeof makeJudge>,
  newSecret: ReturnType<typeof makeNewSecret>
) =>
  Effect.fn("Endpoints.prepareCreate")(function* (principal: PrincipalShape, params: NewEndpoint) {
    yield* judgeSubscription(params.events)
    const filters = yield* judgeFilters(params.filters ?? {})
    const url = yield* judgeDestination(principal, params.url)
    const id = EndpointId.make(yield* newId)
    const { encrypted, secretId, signingSecret } = yield* newSecret(principal)
    return Effect.gen(function* () {
      yield* repo.lockWorkspace(principal)
      if ((yield* repo.count(principal)) >= options.limit) {
        return yield* new EndpointLimitReached()
      }
      yield* repo.insert(principal, { id, name: params.name, url, events: params.events, filters })
      yield* repo.insertSecret(principal, { id: secretId, endpointId: id, encrypted })
      yield* record(principal, "endpoint.created", id)
      const created = yield* Effect.flatMap(repo.find(principal, id), Effect.orDie)
      return { ...created, ...shownSecrets(signingSecret) }
    }).pipe(transaction(sql), orUnavailable)
  })

const makeReads = ({ catalog, options, repo, slowReads }: Parts, { orNotFound }: ReturnType<typeof makeLookup>) => {
  const shownCatalog = catalog.map(({ description, type }) => ({ type, description }))

  const list = Effect.fn("Endpoints.list")(function* (tenant: Tenant) {
    const rows = yield* repo.list(tenant)
    const failures = yield* slowReads.inTurn(tenant)(repo.recentFailures(tenant))
    const data = rows.map((row) => ({ ...row, recentFailures: failures.get(row.id) ?? 0 }))
    return { data, eventTypes: shownCatalog }
  }, orUnavailable)

  const get = Effect.fn("Endpoints.get")(function* (tenant: Tenant, id: EndpointId) {
    return yield* orNotFound(yield* repo.find(tenant, id))
  }, orUnavailable)

  const listSkipped = Effect.fn("Endpoints.listSkipped")(function* (
    tenant: Tenant,
    id: EndpointId,
    { limit = defaultPageSize, starting_after: after }: ListSkipped
  ) {
    yield* Effect.filterOrFail(repo.existed(tenant, id), (found) => found, noEndpoint)
    if (after !== undefined && !(yield* repo.isSkipped(tenant, id, after))) {
      return yield* unknownCursor()
    }
    const rows = yield* repo.listSkipped(tenant, id, { after, limit: limit + 1, keepFor: options.keepFor })
    const data = rows.slice(0, limit).map(({ payload, ...skipped }) => {
      const event: unknown = JSON.parse(payload)
      return { ...skipped, event }
    })
    return { data, has_more: rows.length > limit }
  }, orUnavailable)

  return { list, get, listSkipped }
}

const makeUpdate = (
  { record, repo, sql }: Parts,
  { judgeSubscription }: ReturnType<typeof makeJudge>,
  { orNotFound }: ReturnType<typeof makeLookup>
) =>
  Effect.fn("Endpoints.update")(function* (principal: PrincipalShape, id: EndpointId, change: EndpointChange) {
    yield* Effect.forEach(Option.toArray(Option.fromNullable(change.events)), judgeSubscription)
    const filters = change.filters === undefined ? null : yield* judgeFilters(change.filters)
    return yield* transaction(sql)(
      Effect.gen(function* () {
        const updated = yield* repo.update(principal, id, {
          active: change.active ?? null,
          name: change.name ?? null,
          events: change.events ?? null,
          filters
        })
        const endpoint = yield* orNotFound(updated)
        yield* record(principal, "endpoint.updated", id)
        return endpoint
      })
    )
  }, orUnavailable)

const makeRemove = ({ record, repo, sql }: Parts, { requireLocked }: ReturnType<typeof makeLookup>) =>
  Effect.fn("Endpoints.delete")(function* (principal: PrincipalShape, id: EndpointId) {
    yield* transaction(sql)(
      Effect.gen(function* () {
        yield* requireLocked(principal, id)
        yield* repo.markDeleted(principal, id)
        yield* repo.eraseSecrets(principal, id)
        const ended = yield* repo.failWaiting({ tenant: principal, id })
        // Attempts under way last: recording one waits for its row, and delays the other attempts recorded in the same
        // statement. Housekeeping fails the rest
        if (ended < batchSize) yield* repo.failUnderWay(principal, id)
        yield* record(principal, "endpoint.deleted", id)
      })
    )
  }, orUnavailable)

const makeRotateSecret = (
  { record, repo, sql }: Parts,
  newSecret: ReturnType<typeof makeNewSecret>,
  { requireLocked }: ReturnType<typeof makeLookup>
) =>
  Effect.fn("Endpoints.rotateSecret")(function* (principal: PrincipalShape, id: EndpointId) {
    const { encrypted, secretId, signingSecret } = yield* newSecret(principal)
    return yield* transaction(sql)(
      Effect.gen(function* () {
        yield* requireLocked(principal, id)
        // None if it was deleted because its master key was lost
        const previousSecretExpiresAt = Option.getOrNull(yield* repo.retireSecret(principal, id))
        yield* repo.insertSecret(principal, { id: secretId, endpointId: id, encrypted })
        yield* repo.eraseSurplusSecrets(principal, id)
        yield* repo.touch(principal, id)
        yield* record(principal, "endpoint.secret_rotated", id)
        const rotated = yield* Effect.flatMap(repo.find(principal, id), Effect.orDie)
        return { ...rotated, previousSecretExpiresAt, ...shownSecrets(signingSecret) }
      })
    )
  }, orUnavailable)

const make = Effect.fnUntraced(function* (options: EndpointsOptions) {
  const parts = yield* makeParts(options)
  const newSecret = makeNewSecret(parts)
  const judge = makeJudge(parts)
  const lookup = makeLookup(parts)
  const prepareCreate = makePrepareCreate(parts, judge, newSecret)
  const reads = makeReads(parts, lookup)
  const update = makeUpdate(parts, judge, lookup)
  const remove = makeRemove(parts, lookup)
  const rotateSecret = makeRotateSecret(parts, newSecret, lookup)
  const create = Effect.fn("Endpoints.create")((principal: PrincipalShape, params: NewEndpoint) =>
    Effect.flatten(prepareCreate(principal, params))
  )
  const clean = inBatches(parts.repo.eraseRetiredSecrets(batchSize)).pipe(
    Effect.asVoid,
    Effect.withSpan("Endpoints.clean"),
    orUnavailable
  )
  const endDeleted = inBatches(transaction(parts.sql)(parts.repo.failWaiting("all deleted"))).pipe(
    Effect.asVoid,
    Effect.withSpan("Endpoints.endDeleted"),
    orUnavailable
  )

  return {
    create,
    prepareCreate,
    list: reads.list,
    get: reads.get,
    update,
    delete: remove,
    rotateSecret,
    listSkipped: reads.listSkipped,
    clean,
    endDeleted
  }
})

export const deletedEndpointsLayer: Layer.Layer<never, never, Endpoints | SqlClient.SqlClient> = housekeepingLayer(
  "deletions",
  Effect.map(Endpoints, ({ endDeleted }) => ({ "deleted endpoints": endDeleted })),
  "30 seconds"
)
