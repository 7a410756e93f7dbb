import { Effect, Queue, type Scope } from "effect"
import type { EmulatorError } from "../EmulatorError.ts"
import {
  type Change,
  type Collections,
  type Delivery,
  type Entry,
  emptyCollections,
  type Kind,
  kinds,
  type Records
} from "../Records.ts"
import { type Journal, memoryJournal, openJournal, readJournal } from "./Journal.ts"

/** One account's records within a transaction, with what the transaction has written. */
export interface Scoped {
  readonly get: <K extends Kind>(kind: K, id: string) => Records[K] | undefined
  readonly all: <K extends Kind>(kind: K) => ReadonlyArray<Records[K]>
  readonly put: <K extends Kind>(kind: K, id: string, value: Records[K]) => void
  readonly remove: (kind: Kind, id: string) => void
}

/** The reads and writes of one request: either all are applied, or none. */
export interface Transaction {
  /** The records in the scope of an account (or of another owner, such as the emulator itself). */
  readonly in: (scope: string) => Scoped
  readonly scopes: () => ReadonlyArray<string>
}

export interface PendingDelivery {
  readonly scope: string
  readonly event: string
  readonly entry: Entry
}

export interface Store {
  /**
   * Runs the body alone (one transaction at a time) and, if it succeeds, writes its changes to the journal as one line
   * before they become visible. If the body fails or the journal cannot be written, nothing changes.
   */
  readonly transact: <A, E, R>(
    body: (transaction: Transaction) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | EmulatorError, R>
  /** Pending deliveries in the order of their events: those left over from before the start, then each new one. */
  readonly outbox: Queue.Dequeue<PendingDelivery>
}

type State<Absent = never> = Map<string, Collections<Absent>>

const collectionsOf = <Absent>(state: State<Absent>, scope: string): Collections<Absent> => {
  const known = state.get(scope)
  if (known !== undefined) return known
  const fresh = emptyCollections<Absent>()
  state.set(scope, fresh)
  return fresh
}

const apply = <K extends Kind>(state: State, { id, kind, scope, value }: Change<K>): void => {
  const collection = collectionsOf(state, scope)[kind]
  if (value === null) collection.delete(id)
  else collection.set(id, value)
}

const changesOfKind = <K extends Kind>(
  scope: string,
  kind: K,
  collections: Collections<null>
): ReadonlyArray<Change<K>> => {
  const collection: Map<string, Records[K] | null> = collections[kind]
  return Array.from(collection, ([id, value]) => ({ scope, kind, id, value }))
}

/** The changes that build this state from an empty one, each kind in creation order. */
const changesOf = (state: State<null>): ReadonlyArray<Change> =>
  Array.from(state).flatMap(([scope, collections]) => kinds.flatMap((kind) => changesOfKind(scope, kind, collections)))

const overlay = (state: State, writes: State<null>, scope: string): Scoped => {
  const base = collectionsOf(state, scope)
  const written = collectionsOf(writes, scope)
  const all = <K extends Kind>(kind: K): ReadonlyArray<Records[K]> => {
    if (written[kind].size === 0) return Array.from(base[kind].values())
    const merged: Map<string, Records[K] | null> = new Map(base[kind])
    for (const [id, value] of written[kind]) merged.set(id, value)
    return Array.from(merged.values()).filter((value) => value !== null)
  }
  return {
    all,
    get: (kind, id) => {
      const value = written[kind].get(id)
      return value === null ? undefined : (value ?? base[kind].get(id))
    },
    put: (kind, id, value) => {
      written[kind].set(id, value)
    },
    remove: (kind, id) => {
      written[kind].set(id, null)
    }
  }
}

const pendingOf = (scope: string, { entry = "snapshot", event }: Delivery): PendingDelivery => ({ scope, event, entry })

const newDelivery = (state: State, change: Change): PendingDelivery | undefined =>
  change.kind !== "delivery" || change.value === null || collectionsOf(state, change.scope).delivery.has(change.id)
    ? undefined
    : pendingOf(change.scope, change.value)

const pendingDeliveries = (state: State): ReadonlyArray<PendingDelivery> =>
  Array.from(state).flatMap(([scope, { delivery }]) =>
    Array.from(delivery.values())
      .filter(({ state }) => state === "pending")
      .map((one) => pendingOf(scope, one))
  )

/**
 * Opens the state, empty or from the journal, which it compacts.
 *
 * @param journalFile if absent, the state is in memory only
 * @param beginWith without a `journalFile`: the journal to start from, which is not modified
 */
export const makeStore = (
  journalFile: string | undefined,
  beginWith?: string
): Effect.Effect<Store, EmulatorError, Scope.Scope> =>
  Effect.gen(function* () {
    const state: State = new Map()
    let journal: Journal = memoryJournal
    if (journalFile === undefined) {
      if (beginWith !== undefined) for (const change of yield* readJournal(beginWith)) apply(state, change)
    } else {
      for (const change of yield* readJournal(journalFile)) apply(state, change)
      journal = yield* openJournal(journalFile, changesOf(state))
    }
    const outbox = yield* Queue.unbounded<PendingDelivery>()
    yield* Queue.offerAll(outbox, pendingDeliveries(state))
    const alone = yield* Effect.makeSemaphore(1)

    const commit = Effect.fnUntraced(function* (writes: State<null>) {
      const changes = changesOf(writes)
      if (changes.length === 0) return
      yield* journal.append(changes)
      for (const change of changes) {
        const pending = newDelivery(state, change)
        if (pending !== undefined) yield* Queue.offer(outbox, pending)
        apply(state, change)
      }
    }, Effect.uninterruptible)

    return {
      outbox,
      transact: (body) =>
        Effect.suspend(() => {
          const writes: State<null> = new Map()
          const transaction: Transaction = {
            in: (scope) => overlay(state, writes, scope),
            scopes: () => Array.from(state.keys())
          }
          return Effect.tap(body(transaction), () => commit(writes))
        }).pipe(alone.withPermits(1))
    }
  })
