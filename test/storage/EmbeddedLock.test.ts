import { readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { acquireLock } from "../../src/storage/EmbeddedLock.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

describe("acquireLock", () => {
  const abandonedLock = Effect.fnUntraced(function* (content: string) {
    const directory = yield* temporaryDirectory
    yield* Effect.promise(() => writeFile(join(directory, "owner.7"), content))
    return directory
  })

  it.scoped("gives the lock of a dead process to exactly one of many that take it over at once", () =>
    Effect.gen(function* () {
      const directory = yield* abandonedLock(JSON.stringify({ pid: 4_000_000, startedAt: "long ago" }))
      const attempts = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.either(acquireLock(directory)), {
        concurrency: "unbounded"
      })
      expect(attempts.filter(({ _tag }) => _tag === "Right")).toHaveLength(1)
      const names = yield* Effect.promise(() => readdir(directory))
      expect(names).toEqual(["owner.8"])
    })
  )

  it.scoped.each([
    ["a process number that was given to a later process", JSON.stringify({ pid: process.ppid, startedAt: "earlier" })],
    ["a released one", ""],
    ["one torn by a power cut", "\0\0\0\0"],
    ["something that is no process", JSON.stringify({ pid: -1, startedAt: "x" })]
  ] as const)("takes over %s", ([, content]) =>
    Effect.gen(function* () {
      const directory = yield* abandonedLock(content)
      yield* acquireLock(directory)
      const refused = yield* Effect.flip(Effect.scoped(acquireLock(directory)))
      expect(refused.message).toContain(`process ${process.pid} (this one)`)
    })
  )

  it.scoped("can be taken again once it was released", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      yield* Effect.scoped(acquireLock(directory))
      yield* Effect.scoped(acquireLock(directory))
      yield* acquireLock(directory)
    })
  )
})
