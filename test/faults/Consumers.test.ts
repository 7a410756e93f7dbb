import { readFile } from "node:fs/promises"
import { Effect } from "effect"
import { nameServer } from "../destinations/endpoints/DestinationNameServer.ts"
import { eventuallyDone } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { badConsumers } from "./BadConsumers.ts"
import { expectTrueHistory, oneMoreDelivered, type StoredDelivery, storedDeliveries } from "./History.ts"
import { type Installation, installation, ofRole, requestToProcess } from "./Installation.ts"
import { makeProvider } from "./Provider.ts"
import { preloading } from "./preload/Preload.ts"
import { Randomness } from "./Randomness.ts"
import { makeReceiver } from "./Receiver.ts"

/** What a name leads to when its endpoint is made: an address that nobody connects to here. */
const publicAddress = "93.184.216.34"

/** What becomes of names, and what an attempt has to come to then. */
const names: ReadonlyArray<readonly [string, ReadonlyArray<string> | null | undefined, string, string]> = [
  ["is-gone.example.com", undefined, "dns_failure", "queued"],
  ["is-silent.example.com", null, "timeout", "queued"],
  ["leads-inside.example.com", ["10.0.0.7"], "destination_blocked", "failed"],
  ["leads-home.example.com", ["127.0.0.1"], "destination_blocked", "failed"],
  ["leads-both-ways.example.com", [publicAddress, "169.254.169.254"], "destination_blocked", "failed"]
]

/** Waits until each delivery of this state has had so many attempts recorded. */
const settledAt = (service: Installation, attempts: number) =>
  eventuallyDone(
    `${attempts} attempts of each`,
    Effect.map(storedDeliveries(service), (all) =>
      all.every((one) => one.state !== "queued" || one.attempts.length >= attempts)
    )
  )

const passTheWait = ({ query }: Installation) =>
  query("UPDATE payments.delivery_queue SET next_attempt_at = now() WHERE lease IS NULL")

const lastOf = ({ attempts }: StoredDelivery) => attempts.at(-1)

const residentMegabytes = (pid: number) =>
  Effect.promise(async () => {
    return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
  })

describe("consumers and name servers that misbehave in every way", () => {
  it.scopedLive.skipIf(process.platform !== "linux")(
    "cost their own deliveries at most 6 attempts, 12 in all, and others nothing (skipped unless on Linux, for /proc)",
    function* () {
      const random = new Randomness()
      const zone: Record<string, ReadonlyArray<string> | null> = Object.fromEntries(
        names.map(([name]) => [name, [publicAddress]])
      )
      const asked = { FAULTS_NAME_SERVER: (yield* nameServer(zone)).address, ...preloading("NameServer") }
      const service = yield* installation([{ role: "api" }, { role: "worker" }], asked)
      const receiver = yield* makeReceiver(random, 10)
      const provider = makeProvider(service, random)
      const bad = yield* badConsumers(receiver.url("elsewhere"))
      const expected = new Map<string, { readonly what: string; readonly state: string; readonly errorCode: unknown }>()
      for (const one of bad) expected.set(yield* service.subscribe(one.url), one)
      for (const [name, , errorCode, state] of names) {
        expected.set(yield* service.subscribe(`https://${name}/hook`), { what: name, state, errorCode })
      }
      for (const [name, becomes] of names) {
        if (becomes === undefined) delete zone[name]
        else zone[name] = becomes
      }
      const good = yield* service.subscribe(receiver.url("good"))

      // The first attempt: each comes to what it has to, and the healthy one waits for none of them
      for (let n = 0; n < 3; n++) yield* oneMoreDelivered(provider, receiver, 1)
      yield* settledAt(service, 1)
      const first = yield* storedDeliveries(service)
      expect(first).toHaveLength(3 * (expected.size + 1))
      for (const delivery of first) {
        expectTrueHistory(delivery)
        const { errorCode, state, what } = expected.get(delivery.endpointId) ?? {
          what: "good",
          state: "delivered",
          errorCode: null
        }
        expect([what, delivery.state, lastOf(delivery)?.errorCode]).toEqual([what, state, errorCode])
      }

      // Five more for those that may be retried, and then no further one without anybody's asking
      for (let attempt = 2; attempt <= 6; attempt++) {
        yield* passTheWait(service)
        yield* settledAt(service, attempt)
      }
      const after = yield* storedDeliveries(service)
      for (const delivery of after) {
        expectTrueHistory(delivery)
        const { state, what } = expected.get(delivery.endpointId) ?? { what: "good", state: "delivered" }
        const [ended, attempts] = state === "queued" ? ["failed", 6] : [state, 1]
        expect([what, delivery.state, delivery.attemptCount]).toEqual([what, ended, attempts])
      }

      // Re-sends: six more, and then they are refused
      const [api] = ofRole(service, "api")
      const failed = after.find(
        ({ attemptCount, endpointId }) => attemptCount === 6 && expected.get(endpointId)?.what === "is not there"
      )
      if (api === undefined || failed === undefined) return yield* Effect.dieMessage("Nothing to send again")
      const resend = requestToProcess(api)(
        "POST",
        `/v2/organizations/${service.local.organizationId}/integrations/deliveries/${failed.id}/retry`,
        { key: service.local.apiKey }
      )
      for (let attempt = 7; attempt <= 12; attempt++) {
        expect((yield* resend).status).toBe(200)
        yield* eventuallyDone(
          "the attempt",
          Effect.map(storedDeliveries(service), (all) =>
            all.some(
              ({ attemptCount, id, state }) => id === failed.id && attemptCount === attempt && state === "failed"
            )
          )
        )
      }
      expect((yield* resend).json["code"]).toBe("delivery_retry_limit_reached")
      const last = (yield* storedDeliveries(service)).find(({ id }) => id === failed.id)
      if (last === undefined) return yield* Effect.dieMessage("It is gone")
      expectTrueHistory(last)
      expect(last.attempts.map(({ trigger }) => trigger)).toEqual([
        ...Array.from({ length: 6 }, () => "automatic"),
        ...Array.from({ length: 6 }, () => "manual")
      ])

      // Nobody followed the redirect, nothing was unpacked or kept
      expect(receiver.exchanges.filter(({ path }) => path === "/elsewhere")).toEqual([])
      expect(good).not.toBe("")
      for (const { pid } of ofRole(service, "worker")) {
        expect(yield* residentMegabytes(pid)).toBeLessThan(600)
      }
      yield* oneMoreDelivered(provider, receiver, 1)
    }
  )
})
