import * as fs from "node:fs"
import { dirname } from "node:path"
import { Effect, Queue, Record, Schema, type Scope } from "effect"
import { EmulatorError } from "../EmulatorError.ts"
import {
  type Change,
  type Collections,
  type Delivery,
  type Entry,
  everyKind,
  type Kind,
  type Records
} from "../Records.ts"

/** Appends one transaction to the journal; on failure the journal is as it was before. */
type Append = (changes: ReadonlyArray<Change>) => Effect.Effect<void, EmulatorError>

const header = JSON.stringify({ journal: "connected-payments-emulator", version: 1 })

const lineOf = (changes: ReadonlyArray<Change>): string => `${JSON.stringify({ changes })}\n`

const unreadable = (file: string, problem: string, cause?: unknown): EmulatorError =>
  new EmulatorError({ reason: "JournalUnreadable", message: `Emulator journal ${file}: ${problem}`, cause })

const unwritable = (file: string, cause: unknown): EmulatorError =>
  new EmulatorError({ reason: "JournalUnwritable", message: `Emulator journal ${file} cannot be written`, cause })

const isMissing = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOENT"

const kinds = Record.keys(everyKind)

const isLine = Schema.is(
  Schema.Struct({
    changes: Schema.Array(
      Schema.Struct({
        scope: Schema.String,
        kind: Schema.Literal(...kinds),
        id: Schema.String,
        value: Schema.Union(Schema.Object, Schema.Null)
      })
    )
  })
)

const parseLine = (line: string): ReadonlyArray<Change> | undefined => {
  try {
    const parsed: unknown = JSON.parse(line)
    // The cast is safe: by its header this emulator wrote the file, and it writes only values of the kind's type
    return isLine(parsed) ? (parsed.changes as ReadonlyArray<Change>) : undefined
  } catch {
    return undefined
  }
}

/**
 * Reads all changes in the journal, oldest first; none if there is no file. The journal has a header line, then one JSON
 * line per transaction (`{"changes": [...]}`).
 *
 * A last line without a line end was being written when the process was killed: nobody got an answer that depends on
 * it, and it is ignored. Any other line that cannot be read fails with `JournalUnreadable`, so that nothing is lost
 * unnoticed.
 */
const readJournal = (file: string): Effect.Effect<ReadonlyArray<Change>, EmulatorError> =>
  Effect.try({ try: () => fs.readFileSync(file, "utf8"), catch: (cause) => cause }).pipe(
    Effect.catchAll((cause) =>
      isMissing(cause) ? Effect.succeed("") : Effect.fail(unreadable(file, "cannot be read", cause))
    ),
    Effect.flatMap((content) => {
      const lines = content.split("\n")
      // The text after the last line end: empty, or an incomplete line
      lines.pop()
      if (lines.length === 0)
        return content === "" || header.startsWith(content)
          ? Effect.succeed([])
          : Effect.fail(unreadable(file, "is not a journal of the emulator"))
      if (lines[0] !== header) return Effect.fail(unreadable(file, "is not a journal of the emulator"))
      const changes: Array<Change> = []
      for (const [index, line] of lines.entries()) {
        if (index === 0) continue
        const parsed = parseLine(line)
        if (parsed === undefined) return Effect.fail(unreadable(file, `line ${index + 1} is damaged`))
        changes.push(...parsed)
      }
      return Effect.succeed(changes)
    })
  )

const writeAll = (descriptor: number, text: string): number => {
  const bytes = Buffer.from(text)
  let written = 0
  while (written < bytes.length) written += fs.writeSync(descriptor, bytes, written)
  return bytes.length
}

/** Writes the compacted file beside the old one and renames it atomically; returns its open descriptor. */
const replaceFile = (
  file: string,
  changes: Iterable<Change>
): { readonly descriptor: number; readonly size: number } => {
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const fresh = `${file}.new`
  fs.rmSync(fresh, { force: true })
  const descriptor = fs.openSync(fresh, "ax", 0o600)
  try {
    let size = writeAll(descriptor, `${header}\n`)
    for (const change of changes) size += writeAll(descriptor, lineOf([change]))
    fs.fsyncSync(descriptor)
    fs.renameSync(fresh, file)
    return { descriptor, size }
  } catch (cause) {
    fs.closeSync(descriptor)
    throw cause
  }
}

/**
 * Replaces the file with one that holds just these records (mode 0600) and opens it for appending.
 *
 * A line is written to the operating system before the answer that depends on it is sent, so a killed process loses
 * nothing that was answered. It is not flushed to the disk: a power failure may lose the last moments.
 */
const openJournal = (file: string, records: Iterable<Change>): Effect.Effect<Append, EmulatorError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({ try: () => replaceFile(file, records), catch: (cause) => unwritable(file, cause) }),
    ({ descriptor }) => Effect.sync(() => fs.closeSync(descriptor))
  ).pipe(
    Effect.map(({ descriptor, size }) => {
      let end = size
      const append = (changes: ReadonlyArray<Change>): void => {
        try {
          end += writeAll(descriptor, lineOf(changes))
        } catch (cause) {
          // Otherwise half a line would make the file unreadable
          fs.ftruncateSync(descriptor, end)
          throw cause
        }
      }
      return (changes) => Effect.try({ try: () => append(changes), catch: (cause) => unwritable(file, cause) })
    })
  )

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
  const fresh: Collections<Absent> = Record.map(everyKind, () => new Map<string, never>())
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
  const base = state.get(scope)
  const written = collectionsOf(writes, scope)
  const all = <K extends Kind>(kind: K): ReadonlyArray<Records[K]> => {
    if (written[kind].size === 0) return Array.from(base?.[kind].values() ?? [])
    const merged: Map<string, Records[K] | null> = new Map(base?.[kind])
    for (const [id, value] of written[kind]) merged.set(id, value)
    return Array.from(merged.values()).filter((value) => value !== null)
  }
  return {
    all,
    get: (kind, id) => {
      const value = written[kind].get(id)
      return value === null ? undefined : (value ?? base?.[kind].get(id))
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
    const source = journalFile ?? beginWith
    if (source !== undefined) for (const change of yield* readJournal(source)) apply(state, change)
    const append: Append =
      journalFile === undefined ? () => Effect.void : yield* openJournal(journalFile, changesOf(state))
    const outbox = yield* Queue.unbounded<PendingDelivery>()
    yield* Queue.offerAll(outbox, pendingDeliveries(state))
    const alone = yield* Effect.makeSemaphore(1)

    const commit = Effect.fnUntraced(function* (writes: State<null>) {
      const changes = changesOf(writes)
      if (changes.length === 0) return
      yield* append(changes)
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
