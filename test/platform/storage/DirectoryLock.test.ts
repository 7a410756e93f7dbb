import { symlink } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { describe } from "vitest"
import { acquireLock, isLocked, tryLock } from "../../../src/platform/storage/embedded/DirectoryLock.ts"
import { expect, it } from "../../harness/Tests.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

describe("acquireLock", () => {
  it.scoped("gives the lock to exactly one of many that want it at once", function* () {
    const directory = yield* temporaryDirectory
    const attempts = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.either(acquireLock(directory)), {
      concurrency: "unbounded"
    })
    expect(attempts.filter(({ _tag }) => _tag === "Right")).toHaveLength(1)
  })

  it.scoped("names the process that holds the directory, under whatever path", function* () {
    const directory = yield* temporaryDirectory
    const alias = join(directory, "alias")
    yield* Effect.promise(() => symlink(directory, alias))
    yield* acquireLock(directory)
    const refused = yield* Effect.flip(acquireLock(alias))
    expect(refused).toMatchObject({ _tag: "DirectoryInUse", holder: String(process.pid) })
  })

  it.scoped("can be taken again once it was released", function* () {
    const directory = yield* temporaryDirectory
    expect(yield* isLocked(directory)).toBe(false)
    yield* Effect.scoped(acquireLock(directory))
    expect(yield* Effect.scoped(tryLock(directory))).toBe(true)
    yield* acquireLock(directory)
    expect([yield* isLocked(directory), yield* tryLock(directory)]).toEqual([true, false])
  })
})
