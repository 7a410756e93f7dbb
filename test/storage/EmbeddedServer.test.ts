import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Option, Scope } from "effect"
import { destroyEmbeddedPostgres, startEmbeddedPostgres } from "../../src/storage/EmbeddedPostgres.ts"
import { processStart } from "../../src/storage/EmbeddedProcess.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

it.scoped("ends a server that hangs by force, so that the scope always closes", () =>
  Effect.gen(function* () {
    const directory = join(yield* temporaryDirectory, "data")
    const scope = yield* Scope.make()
    yield* Scope.extend(startEmbeddedPostgres({ directory, durable: false }), scope)
    const status = yield* Effect.promise(() => readFile(join(directory, "cluster", "postmaster.pid"), "utf8"))
    const postmaster = Number(status.split("\n")[0])
    // A stopped process handles neither the fast nor the immediate request.
    process.kill(postmaster, "SIGSTOP")
    yield* Scope.close(scope, Exit.void)
    expect(Option.isNone(yield* processStart(postmaster))).toBe(true)
    yield* Effect.scoped(startEmbeddedPostgres({ directory, durable: false }))
    yield* destroyEmbeddedPostgres(directory)
  })
)
