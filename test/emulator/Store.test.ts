import { appendFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs"
import { Effect, type Scope } from "effect"
import type { EmulatorError } from "../../src/emulator/EmulatorError.ts"
import { makeStore, type Scoped, type Store } from "../../src/emulator/store/Store.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { temporaryDirectory } from "./Harness.ts"

const scope = "acct_a"

const write = (store: Store, body: (objects: Scoped) => void) =>
  store.transact((transaction) => Effect.sync(() => body(transaction.in(scope))))

const urls = (store: Store) =>
  store.transact((transaction) =>
    Effect.succeed(
      transaction
        .in(scope)
        .all("webhook")
        .map(({ url }) => url)
    )
  )

const opened = <A, E>(
  file: string,
  body: (store: Store) => Effect.Effect<A, E, Scope.Scope>
): Effect.Effect<A, E | EmulatorError> => Effect.scoped(Effect.flatMap(makeStore(file), body))

describe("the journal", () => {
  it.scoped("keeps a transaction whole or loses it, wherever the process was stopped in writing it", function* () {
    const file = `${yield* temporaryDirectory}/journal`
    yield* opened(file, (store) => write(store, (objects) => objects.put("webhook", "1", { url: "one" })))
    const before = readFileSync(file)
    yield* opened(file, (store) =>
      write(store, (objects) => {
        objects.put("webhook", "2", { url: "twö" })
        objects.put("webhook", "3", { url: "three" })
      })
    )
    const compacted = readFileSync(file)
    const whole = Buffer.concat([before, compacted.subarray(compacted.indexOf("\n", before.length - 1) + 1)])
    for (let cut = before.length; cut < whole.length; cut++) {
      writeFileSync(file, whole)
      truncateSync(file, cut)
      expect(yield* opened(file, urls)).toEqual(["one"])
      // The torn line is gone for good: what is written next stands on a line of its own
      yield* opened(file, (store) => write(store, (objects) => objects.put("webhook", "4", { url: "four" })))
      expect(yield* opened(file, urls)).toEqual(["one", "four"])
    }
  })

  it.scoped("is not touched where it is damaged or not the emulator's", function* () {
    const file = `${yield* temporaryDirectory}/journal`
    yield* opened(file, (store) => write(store, (objects) => objects.put("webhook", "1", { url: "one" })))
    const good = readFileSync(file, "utf8")
    const contents = [
      "my diary\n",
      "my diary",
      `${good}{"changes":[{]}\n`,
      `${good}{"changes":[{"scope":"a","kind":"nothing","id":"1","value":{}}]}\n`,
      `${good}\n`,
      `${good}{"changes":{}}\n`
    ]
    for (const content of contents) {
      writeFileSync(file, content)
      expect(yield* Effect.flip(Effect.scoped(makeStore(file)))).toMatchObject({ reason: "JournalUnreadable" })
      expect(readFileSync(file, "utf8")).toBe(content)
    }
    expect(existsSync(`${file}.new`)).toBe(false)
    writeFileSync(file, good)
    appendFileSync(file, '{"torn')
    expect(yield* opened(file, urls)).toEqual(["one"])
  })

  it.scoped("that cannot be written stops the start with a reason", function* () {
    const directory = yield* temporaryDirectory
    expect(yield* Effect.flip(Effect.scoped(makeStore(directory)))).toMatchObject({ _tag: "EmulatorError" })
    writeFileSync(`${directory}/file`, "")
    const error = yield* Effect.flip(Effect.scoped(makeStore(`${directory}/file/journal`)))
    expect(error._tag).toBe("EmulatorError")
    expect(error.message).toContain(`${directory}/file/journal`)
  })
})
