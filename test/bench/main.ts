import { NodeRuntime } from "@effect/platform-node"
import { Cause, Console, Effect, Logger, LogLevel } from "effect"
import { apiBench } from "./api/Api.ts"
import { type Bench, type Figure, rowsOf, table } from "./Bench.ts"
import { bodiesBench } from "./bodies/Bodies.ts"
import { deliveriesBench } from "./deliveries/Deliveries.ts"
import { floodBench } from "./flood/Flood.ts"
import { growthBench } from "./growth/Growth.ts"
import { inboundBench } from "./inbound/Inbound.ts"
import { latencyBench } from "./latency/Latency.ts"
import { memoryBench } from "./memory/Memory.ts"
import { neighbourBench } from "./neighbour/Neighbour.ts"
import { pathsBench } from "./paths/Paths.ts"
import { peersBench } from "./peers/Peers.ts"
import { providerBench } from "./provider/Provider.ts"
import { scaleBench } from "./scale/Scale.ts"
import { soakBench } from "./soak/Soak.ts"
import { wakeUpBench } from "./wakeup/WakeUp.ts"
import { workersBench } from "./workers/Workers.ts"

/**
 * `npm run bench -- <name>`: a table for people, then a line of JSON per figure. `all` runs one bench after the other and
 * goes on if one fails; its table has a row per figure.
 */

const benches: ReadonlyArray<Bench> = [
  apiBench,
  floodBench,
  providerBench,
  inboundBench,
  deliveriesBench,
  workersBench,
  scaleBench,
  latencyBench,
  wakeUpBench,
  growthBench,
  neighbourBench,
  memoryBench,
  bodiesBench,
  pathsBench,
  peersBench
]

/** Those that take longer than all others together; `all` leaves them out. */
const longBenches: ReadonlyArray<Bench> = [soakBench]

const usage = [
  "Usage: npm run bench -- <name>",
  "",
  ...[...benches, ...longBenches].map(({ about, name }) => `  ${name.padEnd(12)}${about}`),
  `  ${"all".padEnd(12)}all of them but ${longBenches.map(({ name }) => name).join(", ")}, in under 30 minutes`
].join("\n")

const runAll = Effect.gen(function* () {
  const figures: Array<Figure> = []
  const failed: Array<string> = []
  for (const { name, run } of benches) {
    const startedAt = performance.now()
    yield* run.pipe(
      Effect.scoped,
      Effect.matchCauseEffect({
        onSuccess: (measured) =>
          Effect.sync(() => {
            figures.push(...measured)
          }),
        onFailure: (cause) =>
          Effect.zipRight(
            Effect.sync(() => {
              failed.push(name)
            }),
            Console.error(Cause.pretty(cause))
          )
      })
    )
    yield* Console.error(`${name}: ${Math.round((performance.now() - startedAt) / 1000)} s`)
  }
  if (failed.length > 0) {
    yield* Console.error(`Failed: ${failed.join(", ")}`)
    process.exitCode = 1
  }
  return figures
})

const run = Effect.gen(function* () {
  const name = process.argv[2]
  const bench = [...benches, ...longBenches].find((one) => one.name === name)
  if (bench === undefined && name !== "all") {
    yield* Console.error(usage)
    process.exitCode = 2
    return
  }
  yield* Console.log(`Node ${process.version}`)
  const figures = bench === undefined ? yield* runAll : yield* bench.run
  yield* Console.log(`\n${bench === undefined ? rowsOf(figures) : table(figures)}\n`)
  for (const figure of figures) yield* Console.log(JSON.stringify(figure))
})

NodeRuntime.runMain(run.pipe(Effect.scoped, Logger.withMinimumLogLevel(LogLevel.Warning)))
