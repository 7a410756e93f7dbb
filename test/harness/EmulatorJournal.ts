import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { Change } from "../../src/emulator/Records.ts"

/** What an emulator has written into its journal: every change of its state, whoever asked for it. */
export type EmulatorJournal = Effect.Effect.Success<typeof makeEmulatorJournal>

/** Kept about requests and notifications, not about anybody's objects. */
const bookkeeping: ReadonlySet<string> = new Set(["answer", "delivery", "webhook"])

const changesIn = (text: string): ReadonlyArray<Change> =>
  text
    .split("\n")
    .filter((line) => line.startsWith('{"changes"'))
    // The emulator of this process wrote the lines
    .flatMap((line): ReadonlyArray<Change> => JSON.parse(line).changes)

/** A journal for one emulator: its file is removed at the first look, which comes after the emulator has started. */
export const makeEmulatorJournal = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "emulator-journal-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )
  const remove = () => rmSync(directory, { recursive: true, force: true })
  const file = join(directory, "journal")
  let opened: number | undefined
  yield* Effect.addFinalizer(() => Effect.sync(() => opened !== undefined && closeSync(opened)))
  const known = new Map<string, string>()
  const changes: Array<Change> = []
  const pending = new Map<string, string>()
  let read = 0

  /** Whole lines only: the emulator writes each in one step of this process. */
  const readOn = (): void => {
    if (opened === undefined) {
      opened = openSync(file, "r")
      // Both sides have it open; a worker that ends without closing its scopes leaves nothing behind
      remove()
    }
    const bytes = Buffer.alloc(fstatSync(opened).size - read)
    if (bytes.length === 0) return
    read += readSync(opened, bytes, 0, bytes.length, read)
    for (const change of changesIn(bytes.toString("utf8"))) {
      if (change.kind === "delivery") {
        if (change.value?.state === "pending") pending.set(change.id, change.scope)
        else pending.delete(change.id)
      }
      if (bookkeeping.has(change.kind)) continue
      const name = `${change.scope} ${change.kind} ${change.id}`
      const value = JSON.stringify(change.value)
      if (known.get(name) === value) continue
      known.set(name, value)
      changes.push(change)
    }
  }

  return {
    file,
    /** The changes so far of what is at the provider, oldest first. A record written as it was before is none. */
    changes: (): ReadonlyArray<Change> => {
      readOn()
      return changes
    },
    /** Whether a notification about one of these accounts is still on its way. */
    isPending: (accounts: ReadonlyArray<string>) => {
      readOn()
      return Array.from(pending.values()).some((account) => accounts.includes(account))
    }
  }
})
