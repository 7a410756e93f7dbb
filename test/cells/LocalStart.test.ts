import { rm } from "node:fs/promises"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { cliHere } from "../cli/CliProcess.ts"
import { createMigratedDatabase, createTestDatabase } from "../harness/TestDatabase.ts"
import { emptyDataDirectory, startService, stop } from "../process/ServiceProcess.ts"

it.scopedLive(
  "Local starts in two cells of one directory each have an organization, and find it again",
  () =>
    Effect.gen(function* () {
      const [directory, north, south] = yield* Effect.all([
        createTestDatabase(),
        createMigratedDatabase,
        createMigratedDatabase
      ])
      const shared = { DIRECTORY_URL: Redacted.value(directory.url) }
      for (const [name, url] of [
        ["north", "http://127.0.0.1:18491"],
        ["south", "http://127.0.0.1:18492"]
      ] as const) {
        expect(yield* cliHere(shared, "cells", "add", name, "--url", url)).toMatchObject({ code: 0, stderr: "" })
      }
      const start = (cell: string, { url }: typeof north) =>
        Effect.gen(function* () {
          const home = yield* emptyDataDirectory
          const settings = { ...shared, CELL_NAME: cell, DATABASE_URL: Redacted.value(url) }
          return { ...(yield* startService(home, settings)), home, settings }
        })
      const first = yield* start("north", north)
      const second = yield* start("south", south)
      expect(first.local.ownerEmail).toBe("owner@example.com")
      expect(second.local.ownerEmail).toBe("owner@south.example.com")
      expect(second.local.organizationId).not.toBe(first.local.organizationId)
      yield* stop(second, "SIGTERM")
      // As after the loss of the file
      yield* Effect.promise(() => rm(join(second.home, "local.json")))
      const again = yield* startService(second.home, second.settings)
      expect(again.local).toMatchObject({
        organizationId: second.local.organizationId,
        ownerEmail: "owner@south.example.com"
      })
    }),
  90_000
)
