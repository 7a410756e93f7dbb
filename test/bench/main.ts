import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Logger, LogLevel } from "effect"
import { apiBench } from "./api/Api.ts"
import { type Bench, table } from "./Bench.ts"
import { deliveriesBench } from "./deliveries/Deliveries.ts"
import { floodBench } from "./flood/Flood.ts"
import { growthBench } from "./growth/Growth.ts"
import { inboundBench } from "./inbound/Inbound.ts"
import { latencyBench } from "./latency/Latency.ts"
import { memoryBench } from "./memory/Memory.ts"
import { neighbourBench } from "./neighbour/Neighbour.ts"
import { peersBench } from "./peers/Peers.ts"
import { providerBench } from "./provider/Provider.ts"

/** `npm run bench -- <name>`: a table for people, then a line of JSON per figure. */

const benches: ReadonlyArray<Bench> = [
  apiBench,
  floodBench,
  providerBench,
  inboundBench,
  deliveriesBench,
  latencyBench,
  growthBench,
  neighbourBench,
  memoryBench,
  peersBench
]

const usage = [
  "Usage: npm run bench -- <name>",
  "",
  ...benches.map(({ about, name }) => `  ${name.padEnd(12)}${about}`)
].join("\n")

const run = Effect.gen(function* () {
  const name = process.argv[2]
  const bench = benches.find((one) => one.name === name)
  if (bench === undefined) {
    yield* Console.error(usage)
    process.exitCode = 2
    return
  }
  yield* Console.log(`Node ${process.version}`)
  const figures = yield* bench.run
  yield* Console.log(`\n${table(figures)}\n`)
  for (const figure of figures) yield* Console.log(JSON.stringify(figure))
})

NodeRuntime.runMain(run.pipe(Effect.scoped, Logger.withMinimumLogLevel(LogLevel.Warning)))
