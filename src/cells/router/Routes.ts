import { performance } from "node:perf_hooks"
import { SqlClient, type SqlError } from "@effect/sql"
import { Effect, Runtime, Schedule, type Scope } from "effect"
import type { Environment } from "../../events/Environment.ts"
import { BoundedMap } from "../../kit/BoundedMap.ts"
import { Gathering } from "../../kit/Gathering.ts"
import { spacingMillis } from "../../kit/Spacing.ts"
import { ownClients, SessionOptions } from "../../storage/Database.ts"
import { addressOf, listenOn } from "../../storage/Listener.ts"
import { Metrics, observeMetrics } from "../../telemetry/Metrics.ts"
import { type Cell, Directory } from "../Directory.ts"
import {
  isAccountKey,
  isOrganizationKey,
  isPersonKey,
  lookUp,
  type RouteKey,
  type RouteRow
} from "./RouteStatements.ts"

/**
 * What a router remembers of the directory. The directory says when a route changes; besides, what is known is asked for
 * again after a minute, while the answer that is there still counts, for up to a day: an outdated route harms nobody,
 * since a cell answers for its own organizations alone. So a directory that is away is felt only for what this router
 * does not know.
 */

/** How long what is known counts without asking again, and how long it counts if the directory can't be asked. */
const freshMillis = 60_000
export const staleMillis = 24 * 60 * 60_000

/** How long the directory's answer that it does not know something counts. */
const unknownMillis = 5000

/** How much is remembered: 100,000 routes take about 30 MB. */
const maxKnown = 100_000
const maxUnknown = 20_000

/** How many routes are read when a router starts, so that it does not meet a directory's outage with none. */
const maxPreloaded = 50_000

/** How many are looked up with one statement, how many statements are under way, and how long one may wait. */
const lookUps = { maxBatch: 500, lanes: 2, patience: 3000 }

/** How often the list of cells is read, besides when it changes. */
const cellsInterval = "30 seconds"

const reconnect = Schedule.exponential("100 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("2 seconds"))
)

interface Known {
  readonly row: RouteRow
  at: number
  /** Whether it is being asked for again. */
  asking: boolean
}

/** The directory could not be asked for something that is not remembered. */
export const directoryAway = Symbol("connected-payments/cells/router/directoryAway")

/** The name of a cell; null if the directory knows none. */
export type Found = string | null | typeof directoryAway

/** The routes of a router. */
export interface Routes {
  /** The cells, as last read; empty before the directory has been reached for the first time. */
  readonly cells: () => ReadonlyArray<Cell>
  /** The cell of an organization, account or person: at once if it is remembered. */
  readonly find: (key: RouteKey) => Found | Promise<Found>
}

/** The key of an organization, account or person, as the directory's notifications name them. */
export const keyOf = {
  organization: (id: string): RouteKey => `organization:${id}`,
  account: (environment: Environment, accountId: string): RouteKey => `account:${environment}:${accountId}`,
  person: (emailHash: Buffer): RouteKey => `person:${emailHash.toString("hex")}`
}

/** The routes, kept up to date until the scope closes. */
export const makeRoutes: Effect.Effect<Routes, never, Directory | SqlClient.SqlClient | SessionOptions | Scope.Scope> =
  Effect.gen(function* () {
    const directory = yield* Directory
    const sql = yield* SqlClient.SqlClient
    const sessions = yield* SessionOptions
    const runtime = yield* Effect.runtime<never>()

    const known = new BoundedMap<Known>(maxKnown)
    const unknown = new BoundedMap<number>(maxUnknown)
    /** What is being asked for; an answer counts unless the route has changed since it was asked for. */
    const pending = new Map<RouteKey, { readonly answer: Promise<RouteRow | null | typeof directoryAway> }>()
    let cells: ReadonlyArray<Cell> = []
    /** Before this, what is known may have changed unheard. */
    let heardSince = Number.NEGATIVE_INFINITY
    /** When a change of an organization, whichever, was heard last. */
    let organizationChangedAt = Number.NEGATIVE_INFINITY
    /** When the directory last answered; the start, before it has. */
    let answeredAt = performance.now()
    const metrics = yield* Metrics
    yield* observeMetrics((writer) =>
      Effect.sync(() =>
        writer.set("connected_payments.router.directory.answer_age", (performance.now() - answeredAt) / 1000, [])
      )
    )

    const answered = Effect.sync(() => {
      answeredAt = performance.now()
    })

    const gathering = yield* Gathering.make<RouteKey, RouteRow | null, SqlError.SqlError | "waited">({
      run: (keys) => Effect.tap(lookUp(sql, keys), answered),
      keyOf: (key) => key,
      lanes: lookUps.lanes,
      maxBatch: lookUps.maxBatch,
      spacing: spacingMillis,
      patience: { millis: lookUps.patience, error: () => "waited" },
      isOfOne: () => false
    })

    /** @param askedAt when it was asked for: what is heard of it from then on is not in the answer */
    const remember = (key: RouteKey, row: RouteRow | null, askedAt: number): void => {
      if (row === null) {
        known.delete(key)
        unknown.set(key, performance.now())
        return
      }
      unknown.delete(key)
      known.set(key, { row, at: askedAt, asking: false })
      // An account or person leads to its organization, whose cell came with the answer
      if (row.organizationId !== null && !isOrganizationKey(key) && askedAt > organizationChangedAt) {
        remember(
          keyOf.organization(row.organizationId),
          { organizationId: row.organizationId, cell: row.cell },
          askedAt
        )
      }
    }

    const ask = (key: RouteKey): Promise<RouteRow | null | typeof directoryAway> => {
      const asked = pending.get(key)
      if (asked !== undefined) return asked.answer
      const askedAt = performance.now()
      const answer: Promise<RouteRow | null | typeof directoryAway> = Runtime.runPromise(runtime)(
        gathering.submit(key).pipe(
          Effect.tap((row) =>
            Effect.sync(() => {
              if (pending.get(key)?.answer === answer) remember(key, row, askedAt)
            })
          ),
          Effect.catchAll((error) =>
            Effect.as(Effect.logDebug("The directory could not be asked", error), directoryAway)
          ),
          Effect.ensuring(
            Effect.sync(() => {
              if (pending.get(key)?.answer === answer) pending.delete(key)
            })
          ),
          Effect.withTracerEnabled(false)
        )
      )
      pending.set(key, { answer })
      return answer
    }

    /** What is remembered; undefined if it has to be asked for. */
    const recall = (key: RouteKey): RouteRow | null | undefined => {
      const now = performance.now()
      const found = known.get(key)
      if (found !== undefined && now - found.at < staleMillis) {
        const isFresh = now - found.at < freshMillis && found.at >= heardSince
        if (!isFresh && !found.asking) {
          found.asking = true
          void ask(key).then(() => {
            found.asking = false
          })
        }
        return found.row
      }
      const unknownAt = unknown.get(key)
      return unknownAt !== undefined && now - unknownAt < unknownMillis ? null : undefined
    }

    /** An account or person is where their organization is now. */
    const cellOf = (key: RouteKey, row: RouteRow | null): Found | Promise<Found> =>
      row === null
        ? null
        : row.organizationId === null || isOrganizationKey(key)
          ? row.cell
          : look(keyOf.organization(row.organizationId))

    const look = (key: RouteKey): Found | Promise<Found> => {
      const row = recall(key)
      if (row !== undefined) return cellOf(key, row)
      return ask(key).then((answer) => (answer === directoryAway ? directoryAway : cellOf(key, answer)))
    }

    const count = (lookup: "remembered" | "asked" | "failed"): void =>
      metrics?.count("connected_payments.router.directory.lookup.count", [lookup])

    const find: Routes["find"] = (key) => {
      const found = look(key)
      if (!(found instanceof Promise)) {
        count("remembered")
        return found
      }
      return found.then((answer) => {
        count(answer === directoryAway ? "failed" : "asked")
        return answer
      })
    }

    /** How often the cells were asked for, and the last of these times that counts: a later one's answer may come first. */
    let askedForCells = 0
    let cellsAreOf = 0
    const readCells = Effect.suspend(() => {
      askedForCells += 1
      const number = askedForCells
      return Effect.map(directory.cells, (read) => {
        answeredAt = performance.now()
        if (number < cellsAreOf) return
        cellsAreOf = number
        cells = read
      })
    }).pipe(Effect.withTracerEnabled(false))

    const preload = Effect.gen(function* () {
      // Asked for again when it is first used: what has changed meanwhile may have been heard already, or not at all
      const at = performance.now() - freshMillis
      const organizations = yield* sql<{ id: string; cell: string }>`
      SELECT id, cell FROM payments_directory.organizations ORDER BY changed_at DESC LIMIT ${maxPreloaded}`
      const accounts = yield* sql<{
        environment: Environment
        accountId: string
        organizationId: string
        cell: string
      }>`
      SELECT a.environment, a.account_id AS "accountId", o.id AS "organizationId", o.cell
      FROM payments_directory.accounts a JOIN payments_directory.organizations o ON o.id = a.organization_id
      ORDER BY a.changed_at DESC LIMIT ${maxPreloaded}`
      for (const { accountId, cell, environment, organizationId } of accounts) {
        known.set(keyOf.account(environment, accountId), {
          row: { organizationId, cell },
          at,
          asking: false
        })
      }
      for (const { cell, id } of organizations) {
        const key = keyOf.organization(id)
        // What was asked for since is newer
        if (known.get(key) === undefined) remember(key, { organizationId: id, cell }, at)
      }
    }).pipe(Effect.withTracerEnabled(false))

    const changed = (payload: string): void => {
      if (payload === "cells") {
        Runtime.runFork(runtime)(Effect.ignore(readCells))
      } else if (isOrganizationKey(payload) || isAccountKey(payload) || isPersonKey(payload)) {
        if (isOrganizationKey(payload)) organizationChangedAt = performance.now()
        known.delete(payload)
        unknown.delete(payload)
        pending.delete(payload)
      }
    }

    yield* listenOn(addressOf(sessions), yield* ownClients, "payments_directory", {
      onListening: () => {
        heardSince = performance.now()
        changed("cells")
      },
      onNotification: changed
    }).pipe(Effect.retry(reconnect), Effect.withTracerEnabled(false), Effect.forkScoped)

    yield* Effect.zipRight(readCells, preload).pipe(
      Effect.tapError((error) => Effect.logWarning("The router waits for the directory (DIRECTORY_URL)", error)),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.zipRight(Effect.repeat(Effect.ignore(readCells), Schedule.spaced(cellsInterval))),
      Effect.forkScoped
    )

    return { cells: () => cells, find }
  })
