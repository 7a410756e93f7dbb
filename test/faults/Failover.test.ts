import { Effect } from "effect"
import { cliHere } from "../app/cli/CliProcess.ts"
import { cuttingProxy } from "../harness/CuttingProxy.ts"
import { eventuallyDone, eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"
import { serviceOn } from "../platform/storage/ReplicatedBed.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { allDelivered, byDelivery, expectNoOverlap, expectNothingLost, oneMoreDelivered } from "./History.ts"
import { type Installation, installation, ofRole, requestToProcess } from "./Installation.ts"
import { makeProvider } from "./Provider.ts"
import { preloading } from "./preload/Preload.ts"
import { Randomness, seed } from "./Randomness.ts"
import { makeReceiver } from "./Receiver.ts"
import { startReplicatedServers } from "./ReplicatedServers.ts"

/** An API and a worker under load, on a primary whose commits wait for a replica. It shows if one waits for a silent server. */
const loaded = Effect.gen(function* () {
  const random = new Randomness()
  const servers = yield* startReplicatedServers(yield* temporaryDirectory, { synchronous: true })
  const service = yield* installation([{ role: "api" }, { role: "worker" }], preloading("Timeouts"), () =>
    Effect.map(cuttingProxy(servers.primary.port), (proxy) => ({ ...servers, server: servers.primary, proxy }))
  )
  const receiver = yield* makeReceiver(random, 60)
  const endpointIds = yield* Effect.forEach(["a", "b", "c"], (path) => service.subscribe(receiver.url(path)))
  return { servers, service, receiver, endpointIds, provider: makeProvider(service, random) }
})

type Loaded = Effect.Effect.Success<typeof loaded>

const untilServed = (service: Installation) =>
  Effect.forEach(
    ofRole(service, "api"),
    (process) =>
      eventuallyDone(
        "the API on the new primary",
        Effect.map(
          requestToProcess(process)("GET", `/v2/organizations/${service.local.organizationId}/integrations/endpoints`, {
            key: service.local.apiKey
          }),
          ({ status }) => status === 200
        )
      ),
    { concurrency: "unbounded" }
  )

/** Everything that must hold when the replica has become the primary. */
const expectWhole = Effect.fnUntraced(function* ({ endpointIds, provider, receiver, servers, service }: Loaded) {
  yield* oneMoreDelivered(provider, receiver, endpointIds.length)
  yield* allDelivered(servers)
  yield* expectNothingLost(servers, provider, receiver, endpointIds)
  expectNoOverlap(receiver)
  expect([...provider.answers.keys()].filter((status) => ![200, 503, 0].includes(status))).toEqual([])
  expect(service.processes.every(({ child }) => child.exitCode === null)).toBe(true)
})

/** Some load before and after the fault. */
const under = <E, R>({ provider, service }: Loaded, fault: Effect.Effect<unknown, E, R>) =>
  provider.loading(
    40,
    Effect.gen(function* () {
      yield* provider.more(30)
      yield* fault
      yield* untilServed(service)
      yield* provider.more(30)
    })
  )

describe("with synchronous replication", () => {
  it.scopedLive(`processes find the promoted replica when the primary is killed (seed ${seed})`, function* () {
    const all = yield* loaded
    const { servers } = all
    yield* under(all, Effect.zipRight(servers.primary.crash, servers.promote))
    yield* expectWhole(all)
    const listening = "SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name LIKE '%listener'"
    yield* eventuallyDone(
      "both listen",
      Effect.map(servers.query<{ count: number }>(listening), ([row]) => row?.count === all.service.processes.length)
    )
    const lines = all.service.processes.flatMap(({ output }) => `${output.stdout}${output.stderr}`.split("\n"))
    // Requests that were answered 503 meanwhile have their lines
    expect(lines.filter((line) => /\bERROR (?!(?:GET|POST) \S+ 503 )/.test(line))).toEqual([])
  })

  it.scopedLive(`the same when the primary falls silent, its connections open (seed ${seed})`, function* () {
    const all = yield* loaded
    const { servers } = all
    yield* under(all, Effect.zipRight(servers.primary.freeze, servers.promote))
    // Before it could wake up and believe itself the primary
    yield* servers.primary.crash
    yield* expectWhole(all)
  })
})

describe("with asynchronous replication", () => {
  it.scopedLive("what was answered 200 last is lost, found and stored again as the guide says", function* () {
    const directory = yield* temporaryDirectory
    const servers = yield* startReplicatedServers(directory, { synchronous: false })
    const service = yield* serviceOn({ url: servers.url })
    const { emulator, key, organizationId } = service
    yield* emulator.setWebhookUrl(`${service.baseUrl}/webhooks/provider`)
    const receiver = yield* makeReceiver(new Randomness(), 1)
    yield* service.subscribe(receiver.url("orders"))
    const caller = { organizationId, key }
    const priceId = yield* makePrice(service, caller)
    const paid = (count: number) =>
      Effect.zipRight(
        Effect.replicateEffect(pay(service, { ...caller, priceId }), count),
        eventuallyTrue("the events", () => new Set(receiver.exchanges.map(({ eventId }) => eventId)).size >= count)
      )
    yield* paid(2)
    yield* allDelivered(servers)
    yield* servers.caughtUp
    yield* servers.fallBehind
    const before = new Set(receiver.exchanges.map(({ eventId }) => eventId))
    yield* Effect.replicateEffect(pay(service, { ...caller, priceId }), 3)
    const lostEvents = () => new Set(receiver.exchanges.map(({ eventId }) => eventId).filter((id) => !before.has(id)))
    yield* eventuallyTrue("what will be lost", () => lostEvents().size === 3)
    yield* allDelivered(servers)
    const stored = yield* servers.query<{ id: string }>(
      "SELECT provider_event_id AS id FROM payments.receipts WHERE outcome = 'delivered'"
    )
    expect(stored).toHaveLength(5)

    yield* servers.primary.crash
    yield* servers.promote
    yield* eventuallyDone(
      "the new primary",
      Effect.map(service.get("/endpoints"), ({ status }) => status === 200)
    )
    const kept = yield* servers.query<{ id: string }>(
      "SELECT provider_event_id AS id FROM payments.receipts WHERE outcome = 'delivered'"
    )
    expect(kept).toHaveLength(2)
    const keptIds = new Set(kept.map(({ id }) => id))
    const lost = stored.map(({ id }) => id).filter((id) => !keptIds.has(id))

    const run = (...args: ReadonlyArray<string>) =>
      cliHere(
        { ...service.commandSettings, DATABASE_URL: servers.url, DATA_DIR: directory },
        "receipts",
        ...args,
        "--environment",
        "sandbox"
      )
    const found = yield* run("missing", "--since", "1 hour", "--json")
    expect([found.code, found.stderr]).toEqual([0, ""])
    const { data } = found.json as {
      readonly data: ReadonlyArray<{ readonly providerEventId: string; readonly type: string }>
    }
    const payments = data.filter(({ type }) => type === "payment_intent.succeeded")
    expect(payments.map(({ providerEventId }) => providerEventId).sort()).toEqual(lost.sort())
    for (const { providerEventId } of data) {
      const ended = yield* run("replay", "--organization", organizationId, "--json", providerEventId)
      expect([ended.code, ended.stderr]).toEqual([0, ""])
    }
    yield* allDelivered(servers)
    const restored = yield* servers.query<{ id: string }>(
      "SELECT provider_event_id AS id FROM payments.receipts WHERE outcome = 'delivered'"
    )
    expect(restored.map(({ id }) => id).sort()).toEqual(stored.map(({ id }) => id).sort())
    // Again, under the ids that consumers know
    expect(lostEvents().size).toBe(3)
    const times = [...byDelivery(receiver).values()].flat().filter(({ eventId }) => lostEvents().has(eventId))
    expect(times.length).toBeGreaterThanOrEqual(6)
    const nothing = yield* run("missing", "--since", "1 hour")
    expect([nothing.code, nothing.stdout]).toEqual([0, "Every event of that time has its receipt.\n"])
  })
})

describe("with a read replica that falls silent and is killed", () => {
  it.scopedLive("lists are read from the primary, after one wait", function* () {
    const servers = yield* startReplicatedServers(yield* temporaryDirectory, { synchronous: false })
    const service = yield* serviceOn({ url: servers.url, readUrl: servers.replica.url })
    yield* service.subscribe((yield* makeReceiver(new Randomness(), 5)).url("orders"))
    const provider = makeProvider(service, new Randomness())
    const expectOwnWrites = Effect.gen(function* () {
      yield* provider.notify
      const { json, status } = yield* service.get("/deliveries?limit=100")
      expect(status).toBe(200)
      expect(json["data"]).toHaveLength(provider.confirmed.size)
    })
    const news = (text: string) => service.log.filter((line) => line.text.includes(text)).length
    const isUsedAgain = (times: number) =>
      eventuallyDone(
        "reads on the replica",
        Effect.map(service.get("/events"), () => news("The read replica is used again") === times)
      )
    yield* expectOwnWrites
    expect(news("The read replica is not used")).toBe(0)

    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* servers.replica.freeze
        yield* expectOwnWrites
        // What comes after that does not wait for the replica
        expect(news("The read replica is not used")).toBe(1)
        yield* expectOwnWrites
      })
    )
    yield* isUsedAgain(1)
    yield* expectOwnWrites

    yield* servers.replica.crash
    yield* Effect.repeatN(expectOwnWrites, 2)
    yield* Effect.orDie(servers.replica.start)
    yield* isUsedAgain(2)
    yield* expectOwnWrites
    expect(news("The read replica is not used")).toBe(2)
  })
})
