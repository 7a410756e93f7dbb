import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Console, Context, Effect, Layer, Redacted, Schedule } from "effect"
import { Directory } from "../../../src/cells/Directory.ts"
import { connectedDirectoryLayer } from "../../../src/cells/DirectoryConnection.ts"
import { OrganizationId } from "../../../src/kit/Ids.ts"
import { startEmbeddedPostgres } from "../../../src/storage/EmbeddedPostgres.ts"
import type { LoadResult } from "../api/Load.ts"
import {
  BenchFailed,
  builtService,
  directoryOfItsOwn,
  firstLine,
  processorTime,
  serviceNodeArgs,
  startScript
} from "../api/Processes.ts"
import { type Bench, figuresOf } from "../Bench.ts"

/**
 * What a router adds to a request: reads of an organization from a cell that answers at once, directly and through a
 * router's process, in turns. One connection shows what it adds to a request, 64 what it costs.
 */

const rounds = 3
const organizations = 1000

interface Round {
  readonly direct: LoadResult
  readonly routed: LoadResult
  /** The router's processor time per request, in microseconds. */
  readonly cost: number
}

const load = Effect.fnUntraced(function* (url: string, paths: ReadonlyArray<string>, connections: number) {
  const options = { url, paths, keys: ["pk_test_bench"], connections, warmUpMillis: 1000, millis: 4000 }
  const result: LoadResult = JSON.parse(
    yield* firstLine(yield* startScript("./Load.ts", { args: [JSON.stringify(options)] }))
  )
  return result.failures === 0 ? result : yield* new BenchFailed({ message: result.firstFailure })
}, Effect.scoped)

const run = Effect.gen(function* () {
  const directory = yield* directoryOfItsOwn
  yield* Console.error("router: starting PostgreSQL, a cell and the router")
  const { url } = yield* startEmbeddedPostgres({ directory: join(directory, "postgres") })
  const cellUrl = yield* firstLine(yield* startScript("../router/Answering.ts"))
  const known = yield* Layer.build(connectedDirectoryLayer({ url, cell: null }))
  const { claimingFor, putCell } = Context.get(known, Directory)
  yield* putCell({ name: "north", url: cellUrl, home: true })
  const ids = Array.from({ length: organizations }, () => OrganizationId.make(randomUUID()))
  yield* Effect.forEach(ids, claimingFor("north").claimOrganization, { concurrency: 4, discard: true })
  const router = yield* startScript(yield* builtService, {
    nodeArgs: serviceNodeArgs,
    env: { ROLES: "router", DIRECTORY_URL: Redacted.value(url), PORT: "0", HOST: "127.0.0.1" }
  })
  const port = yield* Effect.suspend(() => {
    const found = /Routing on port (\d+)/.exec(router.log())?.[1]
    return found === undefined
      ? new BenchFailed({ message: `It does not start: ${router.log()}` })
      : Effect.succeed(found)
  }).pipe(Effect.retry(Schedule.intersect(Schedule.spaced("100 millis"), Schedule.recurs(1800))))
  const routerUrl = `http://127.0.0.1:${port}`
  const paths = ids.map((id) => `/v2/organizations/${id}/integrations/deliveries/${randomUUID()}`)
  const pid = router.child.pid ?? 0

  const roundOf = (connections: number) =>
    Effect.gen(function* () {
      const direct = yield* load(cellUrl, paths, connections)
      const before = processorTime(pid)
      const routed = yield* load(routerUrl, paths, connections)
      return { direct, routed, cost: (processorTime(pid) - before) / routed.answered } satisfies Round
    })
  const results = yield* Effect.forEach([1, 64], (connections) =>
    Effect.gen(function* () {
      yield* Console.error(`router: ${connections} connections`)
      const measured = yield* Effect.replicateEffect(roundOf(connections), rounds)
      const figure = figuresOf<Round>("router", measured)
      const name = connections === 1 ? "1 connection" : `${connections} connections`
      return [
        figure(name, "p50 directly", "ms", ({ direct }) => direct.p50),
        figure(name, "p50 through the router", "ms", ({ routed }) => routed.p50),
        figure(name, "p50 added", "ms", ({ direct, routed }) => routed.p50 - direct.p50),
        figure(name, "requests through the router", "1/s", ({ routed }) => routed.requests / routed.seconds),
        figure(name, "router's processor time", "µs", ({ cost }) => cost)
      ]
    })
  )
  return results.flat()
})

export const routerBench: Bench = {
  name: "router",
  about: "what a router adds to a request on its way to a cell",
  run
}
