import { appendFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs"
import { Effect, FastCheck, type Scope } from "effect"
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

describe("a transaction", () => {
  it.scoped("sees its own writes, and nobody else's until it succeeds", function* () {
    const store = yield* makeStore(undefined)
    yield* write(store, (objects) => objects.put("webhook", "1", { url: "one" }))
    yield* Effect.flip(
      store.transact((transaction) => {
        const objects = transaction.in(scope)
        objects.put("webhook", "2", { url: "two" })
        objects.put("webhook", "1", { url: "changed" })
        expect(objects.all("webhook")).toEqual([{ url: "changed" }, { url: "two" }])
        objects.remove("webhook", "1")
        expect(objects.get("webhook", "1")).toBeUndefined()
        expect(objects.all("webhook")).toEqual([{ url: "two" }])
        return Effect.fail("no")
      })
    )
    expect(yield* urls(store)).toEqual(["one"])
  })

  it.scoped("waits for the one before it", function* () {
    const store = yield* makeStore(undefined)
    yield* write(store, (objects) => objects.put("webhook", "n", { url: "0" }))
    const increment = store.transact((transaction) =>
      Effect.gen(function* () {
        const before = Number(transaction.in(scope).get("webhook", "n")?.url)
        yield* Effect.yieldNow()
        transaction.in(scope).put("webhook", "n", { url: String(before + 1) })
      })
    )
    yield* Effect.all(
      Array.from({ length: 50 }, () => increment),
      { concurrency: "unbounded" }
    )
    expect(yield* urls(store)).toEqual(["50"])
  })
})

describe("the journal", () => {
  it.scoped("brings back any sequence of changes, order included", function* () {
    const directory = yield* temporaryDirectory
    let run = 0
    const step = FastCheck.record({
      id: FastCheck.constantFrom("a", "b", "c", "d"),
      url: FastCheck.option(FastCheck.string()),
      reopen: FastCheck.boolean()
    })
    yield* Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(FastCheck.array(step, { maxLength: 20 }), async (steps) => {
          const file = `${directory}/${run++}`
          const model = new Map<string, string>()
          const check = opened(file, urls).pipe(
            Effect.map((found) => expect(found).toEqual(Array.from(model.values())))
          )
          for (const { id, reopen, url } of steps) {
            if (url === null) model.delete(id)
            else model.set(id, url)
            await Effect.runPromise(
              opened(file, (store) =>
                write(store, (objects) =>
                  url === null ? objects.remove("webhook", id) : objects.put("webhook", id, { url })
                )
              )
            )
            if (reopen) await Effect.runPromise(check)
          }
          await Effect.runPromise(check)
        }),
        { numRuns: 50 }
      )
    )
  })

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
