import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { temporaryDirectory } from "../../platform/storage/fixtures/temporaryDirectory.ts"
import { localOf, processorTime, startBuilt } from "../api/Processes.ts"
import { type Bench, figuresOfCases, inRounds } from "../Bench.ts"
import { connectTo, fillQueue, makeEndpoints, parentOf, startDatabase, startReceiver } from "../deliveries/Bed.ts"
import { notified } from "../latency/Notified.ts"
import { roundsOf, share } from "../sizes.ts"

/**
 * How much memory the service holds: all of it, with its embedded PostgreSQL and the emulator, as `npm start` runs it, once
 * it has started and after it has been busy; and a worker alone, with nothing to do and while a million deliveries wait. The
 * worker runs with a provider's keys, so that nothing of the local defaults is there. Only the mode stays local, since
 * production delivers to no receiver on this machine.
 */

const backlog = 1_000_000 * share
const rounds = roundsOf(3)
const millis = 15_000

/** What it is busy with: events per second, each of them with one delivery. */
const busy = { rate: 500, warmUpMillis: 0, millis: 10_000 }

/** Until what a start or a load has begun has ended, and V8 has given back what it no longer needs: it waits eight seconds. */
const restMillis = 12_000

const providerKeys = { PROVIDER_SANDBOX_SECRET_KEY: "sk_test_bench", PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_bench" }

const kilobytesIn = (file: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(file, "utf8"))?.[1])

export const residentMegabytes = (pid: number) => Effect.sync(() => kilobytesIn(`/proc/${pid}/status`, "VmRSS") / 1024)

const familyOf = (pid: number): ReadonlyArray<number> => {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), parentOf(Number(name))] as const)
  const family = new Set([pid])
  for (const one of family) for (const [child, parent] of parents) if (parent === one) family.add(child)
  return [...family]
}

/**
 * Megabytes of a process and of all that it has started, with what several of them share counted once. What the program's
 * own files take is a part of it that is smaller if others run Node, too.
 */
const familysMegabytes = (pid: number) =>
  Effect.sync(() => {
    const family = familyOf(pid)
    const sum = (pids: ReadonlyArray<number>, field: string) =>
      pids.reduce((total, one) => total + kilobytesIn(`/proc/${one}/smaps_rollup`, field) / 1024, 0)
    return { all: sum(family, "Pss"), own: sum(family, "Pss_Anon") + sum(family, "Pss_Shmem"), node: sum([pid], "Pss") }
  })

interface Held {
  readonly all: number
  /** The part of it that is no file. */
  readonly own: number
  readonly node: number
}

const cases = ["all, started", "all, after a load", "worker, started", "worker, a million waiting"]

export const memoryBench: Bench = {
  name: "memory",
  about: "what a service and a worker hold, after the start, after a load and at a backlog of a million",
  run: Effect.gen(function* () {
    const say = (name: string, { all, node, own }: Held) =>
      Console.error(`  ${name}: ${all.toFixed(0)} MB, ${own.toFixed(0)} without files, ${node.toFixed(0)} of Node`)
    const rested = (pid: number) =>
      Effect.zipRight(
        Effect.promise(() => sleep(restMillis)),
        familysMegabytes(pid)
      )
    const measureAll = Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const startedAt = performance.now()
      const { pid } = yield* startBuilt("all", { DATA_DIR: join(directory, "service") })
      yield* Console.error(
        `  started in ${((performance.now() - startedAt) / 1000).toFixed(1)} s, ${processorTime(pid) / 1000} ms of processor time`
      )
      const started = yield* rested(pid)
      const { databaseUrl } = yield* localOf(join(directory, "service"))
      const { load } = yield* notified({ directory, query: yield* connectTo(databaseUrl) }, 1)
      yield* load(busy)
      return [started, yield* rested(pid)]
    }).pipe(Effect.scoped)
    const database = yield* startDatabase
    const receiver = yield* startReceiver(64)
    const endpoints = yield* makeEndpoints(database, receiver.urls)
    const startWorker = startBuilt("worker", {
      DATA_DIR: join(database.directory, "service"),
      DATABASE_URL: database.url,
      ...providerKeys
    })
    const idle = yield* inRounds(rounds, () => Effect.scoped(Effect.flatMap(startWorker, ({ pid }) => rested(pid))))
    yield* fillQueue(database, endpoints, backlog)
    const measureWorker = Effect.gen(function* () {
      const { pid } = yield* startWorker
      const before = yield* receiver.look
      let highest = yield* familysMegabytes(pid)
      for (let waited = 0; waited < millis; waited += 100) {
        const now = yield* familysMegabytes(pid)
        if (now.all > highest.all) highest = now
        yield* Effect.promise(() => sleep(100))
      }
      yield* Console.error(`  ${(yield* receiver.look).received - before.received} delivered meanwhile`)
      return highest
    }).pipe(Effect.scoped)
    const results = yield* inRounds(rounds, (round) =>
      Effect.gen(function* () {
        const idleWorker = idle.slice(round - 1, round)
        const held: ReadonlyArray<Held> = [...(yield* measureAll), ...idleWorker, yield* measureWorker]
        for (const [index, name] of cases.entries()) if (held[index] !== undefined) yield* say(name, held[index])
        return held
      })
    )
    return figuresOfCases<Held>("memory", cases, results, [
      ["pss_mb", "MB", ({ all }) => all],
      ["without_files", "MB", ({ own }) => own],
      ["of_node", "MB", ({ node }) => node]
    ])
  })
}
