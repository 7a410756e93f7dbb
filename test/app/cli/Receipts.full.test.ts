import { userInfo } from "node:os"
import { expect } from "@effect/vitest"
import { Effect, Option, Schema } from "effect"
import { eventually } from "../../harness/Eventually.ts"
import { inDatabase, masterKeysSetting, onSharedService, TestService } from "../../harness/TestService.ts"
import { makeTenant, subscribe, type Tenant } from "../../inbound/Notifications.ts"
import { makePrice, pay } from "../../surface/http/Payments.ts"
import { cli, cliHere, type Ended, expectDone, expectRefused, operatorSettings } from "./CliProcess.ts"

/** Runs commands with the settings of the service under test; replays alone have its master keys. */
const operator = Effect.gen(function* () {
  const { options } = yield* TestService
  const environment = yield* operatorSettings
  const settingsFor = (verb: string | undefined) =>
    verb === "replay" ? { ...environment, MASTER_KEYS: masterKeysSetting(options.masterKeys) } : environment
  return {
    run: (...args: ReadonlyArray<string>) => cli(settingsFor(args[0]), "receipts", ...args),
    runHere: (...args: ReadonlyArray<string>) => cliHere(settingsFor(args[0]), "receipts", ...args),
    replayWithoutKeys: (...args: ReadonlyArray<string>) => cliHere(environment, "receipts", "replay", ...args)
  }
})

const Shown = Schema.Struct({ providerEventId: Schema.String, type: Schema.String, outcome: Schema.String })
const Page = Schema.Struct({ data: Schema.Array(Shown), has_more: Schema.Boolean })
const pageOf = ({ json }: Ended) => Schema.decodeUnknownSync(Page)(json)

const receiptOf = (tenant: Tenant, type: string) =>
  eventually(
    `the receipt of ${type}`,
    Effect.map(
      inDatabase<{ id: string }>`
        SELECT provider_event_id AS id FROM payments.receipts WHERE organization_id = ${tenant.id} AND type = ${type}`,
      ([row]) => Option.fromNullable(row?.id)
    )
  )

/** A payment that nobody was subscribed to: its receipts are there, and no delivery. */
const unheardPayment = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* makeTenant
  const caller = { organizationId: tenant.id, key: tenant.key }
  yield* pay(service, { ...caller, priceId: yield* makePrice(service, caller) })
  yield* receiptOf(tenant, "checkout.session.completed")
  return { tenant, event: yield* receiptOf(tenant, "payment_intent.succeeded") }
})

const sandbox = ["--environment", "sandbox"]

onSharedService("connected-payments receipts", (it) => {
  it.scoped(
    "list: what the provider reported, newest first, in pages, by organization, outcome, type and time",
    function* () {
      const { run, runHere } = yield* operator
      const { event, tenant } = yield* unheardPayment
      const list = ["list", ...sandbox, "--organization", tenant.id]
      const all = expectDone(yield* run(...list, "--limit", "100", "--json"))
      const { data } = pageOf(all)
      expect(data).toContainEqual({
        providerEventId: event,
        type: "payment_intent.succeeded",
        outcome: "no_subscriber"
      })
      expect(all.json).toMatchObject({
        data: data.map(() => ({ organizationId: tenant.id, environment: "sandbox" }))
      })
      const times = Schema.decodeUnknownSync(
        Schema.Struct({ data: Schema.Array(Schema.Struct({ receivedAt: Schema.Date })) })
      )(all.json).data.map(({ receivedAt }) => receivedAt.getTime())
      expect(times).toEqual(times.toSorted((a, b) => b - a))

      const only = (...filters: ReadonlyArray<string>) => Effect.map(runHere(...list, ...filters, "--json"), pageOf)
      expect((yield* only("--type", "payment_intent.succeeded")).data.map((one) => one.providerEventId)).toEqual([
        event
      ])
      expect((yield* only("--outcome", "no_subscriber", "--limit=100")).data).toEqual(
        data.filter(({ outcome }) => outcome === "no_subscriber")
      )
      expect((yield* only("--outcome", "delivered")).data).toEqual([])
      expect((yield* only("--since", "1 hour", "--limit=100")).data).toEqual(data)
      expect((yield* only("--since", "2100-01-01")).data).toEqual([])

      expect(yield* only("--limit", "1")).toEqual({ data: data.slice(0, 1), has_more: true })
      const second = yield* only("--limit", "1", "--before", data[0]?.providerEventId ?? "")
      expect(second.data).toEqual(data.slice(1, 2))
      expect((yield* only("--limit", "100", "--before", data.at(-1)?.providerEventId ?? "")).data).toEqual([])

      const table = yield* runHere(...list, "--limit", "1")
      expect(table.stdout).toMatch(/^RECEIVED AT +EVENT +TYPE +OUTCOME +ORGANIZATION +COPIES +REASON\n/)
      expect([table.code, table.stderr]).toEqual([0, `There are more: --before ${data[0]?.providerEventId}\n`])
      const live = runHere("list", "--environment", "production", "--organization", tenant.id)
      expect(expectDone(yield* live).stdout).toBe("There are no such receipts.\n")
    }
  )

  it.scoped(
    "replay: makes the deliveries that are missing, once, on record as the operator's; show tells of them",
    function* () {
      const { sql } = yield* TestService
      const { replayWithoutKeys, run, runHere } = yield* operator
      const { event, tenant } = yield* unheardPayment
      expectRefused(yield* replayWithoutKeys(...sandbox, event), 1, 'The master key "test" is not among MASTER_KEYS')
      const replay = ["replay", ...sandbox, event]
      expect(expectDone(yield* runHere(...replay)).stdout).toBe(
        "Nothing was missing: no delivery was created. The receipt's outcome: no_subscriber\n"
      )
      const shown = yield* runHere("show", ...sandbox, event, "--json")
      expect(expectDone(shown).json).toMatchObject({ providerEventId: event, outcome: "no_subscriber" })

      const { id: endpointId } = yield* subscribe(tenant)
      yield* subscribe(tenant, ["payment.failed"])
      expect(expectDone(yield* run(...replay, "--json")).json).toMatchObject({
        environment: "sandbox",
        providerEventId: event,
        deliveriesMade: 1,
        events: [{ type: "payment.succeeded", deliveriesMade: 1 }]
      })
      const again = yield* Effect.all([runHere(...replay, "--json"), runHere(...replay, "--json")], {
        concurrency: 2
      })
      for (const one of again) expect(expectDone(one).json).toMatchObject({ deliveriesMade: 0 })
      const deliveries = yield* sql<{ endpointId: string; state: string }>`
          SELECT endpoint_id AS "endpointId", state FROM payments.deliveries WHERE organization_id = ${tenant.id}`
      expect(deliveries).toEqual([{ endpointId, state: "queued" }])

      expect(expectDone(yield* runHere("show", ...sandbox, event, "--json")).json).toMatchObject({
        events: [{ type: "payment.succeeded", deliveries: { queued: 1, delivered: 0, failed: 0 }, skipped: 0 }]
      })
      const text = expectDone(yield* runHere("show", ...sandbox, event)).stdout
      expect(text).toMatch(/^Event +evt_\w+\nType +payment_intent\.succeeded\n/)
      expect(text).toMatch(/payment\.succeeded +1 +0 +0 +0/)
      const audit = yield* sql<{ entry: string }>`
          SELECT concat_ws(' ', action, author_kind, author_id, target_id) AS entry FROM payments.audit_log
          WHERE organization_id = ${tenant.id} AND action LIKE 'receipt.%'`
      expect(audit).toEqual([{ entry: `receipt.replayed operator ${userInfo().username} ${event}` }])
    }
  )

  it.scoped(
    "missing: what the provider reported and is not on record, which replay stores for its organization",
    function* () {
      const { sql } = yield* TestService
      const { run, runHere } = yield* operator
      const { event, tenant } = yield* unheardPayment
      const { id: endpointId } = yield* subscribe(tenant)
      const missing = (...more: ReadonlyArray<string>) =>
        runHere("missing", ...sandbox, "--organization", tenant.id, "--since", "1 hour", ...more)
      const idsOf = (ended: Ended) =>
        Schema.decodeUnknownSync(
          Schema.Struct({
            data: Schema.Array(Schema.Struct({ providerEventId: Schema.String, type: Schema.String }))
          })
        )(expectDone(ended).json).data
      expect(expectDone(yield* missing()).stdout).toBe("Every event of that time has its receipt.\n")

      // As a database that has lost its last moments
      yield* sql`DELETE FROM payments.receipts WHERE organization_id = ${tenant.id} AND provider_event_id = ${event}`
      yield* sql`DELETE FROM payments.events WHERE organization_id = ${tenant.id} AND provider_event_id = ${event}`
      const lost = [{ providerEventId: event, type: "payment_intent.succeeded" }]
      expect(idsOf(yield* missing("--json"))).toEqual(lost)
      // Other organizations' accounts may be disconnected by now, which is said
      const everywhere = yield* run("missing", ...sandbox, "--since", "1 hour", "--json")
      expect(everywhere.stderr).toMatch(/^(?:Not asked: organization .*\n)*$/)
      expect(idsOf({ ...everywhere, stderr: "" })).toEqual(expect.arrayContaining(lost))
      expect(idsOf(yield* missing("--until", "30 minutes", "--json"))).toEqual([])
      expectRefused(yield* runHere("replay", ...sandbox, event), 1, "There is no receipt")

      const replay = runHere("replay", ...sandbox, "--organization", tenant.id, event, "--json")
      const made = (yield* Effect.all([replay, replay], { concurrency: 2 })).map((ended) =>
        Schema.decodeUnknownSync(Schema.Struct({ deliveriesMade: Schema.Number }))(expectDone(ended).json)
      )
      expect(made.map(({ deliveriesMade }) => deliveriesMade).sort()).toEqual([0, 1])
      const deliveries = yield* sql<{ endpointId: string; state: string }>`
          SELECT endpoint_id AS "endpointId", state FROM payments.deliveries WHERE organization_id = ${tenant.id}`
      expect(deliveries).toEqual([{ endpointId, state: "queued" }])
      expect(expectDone(yield* missing()).stdout).toBe("Every event of that time has its receipt.\n")
      const audit = yield* sql`
          SELECT 1 FROM payments.audit_log WHERE organization_id = ${tenant.id} AND action = 'receipt.replayed'`
      expect(audit).toHaveLength(1)

      // A time in one process, however many events it has, with its progress
      yield* sql`DELETE FROM payments.receipts WHERE organization_id = ${tenant.id} AND provider_event_id = ${event}`
      const range = ["--organization", tenant.id, "--since", "1 hour", "--json"]
      const stored = yield* runHere("replay", ...sandbox, ...range)
      expect([stored.code, stored.stderr]).toEqual([0, "Stored: 1\n"])
      expect(stored.json).toEqual({ stored: 1, refused: 0, notAsked: [] })
      expect(expectDone(yield* runHere("replay", ...sandbox, ...range)).json).toMatchObject({ stored: 0 })
      expectRefused(
        yield* runHere("replay", ...sandbox, ...range, event),
        1,
        "Name either an event, --outcome or --since."
      )

      // All receipts with an outcome, page by page; the provider no longer has most of these
      const { event: unheard, tenant: other } = yield* unheardPayment
      yield* subscribe(other)
      const copies = (receivedAt: string) => sql`
          INSERT INTO payments.receipts SELECT (jsonb_populate_record(r, jsonb_build_object(
            'provider_event_id', 'evt_gone' || number, 'outcome', 'no_subscriber', 'received_at', ${receivedAt}::text))).*
          FROM payments.receipts r, generate_series(1, 150) AS number
          WHERE organization_id = ${other.id} AND provider_event_id = ${unheard}`
      yield* copies(new Date(Date.now() - 60_000).toISOString())
      const ofOutcome = ["replay", ...sandbox, "--organization", other.id, "--outcome", "no_subscriber", "--json"]
      const recent = yield* runHere(...ofOutcome, "--since", "30 seconds")
      expect(recent.json).toEqual({ stored: 1, refused: 0, notAsked: [] })
      const all = yield* runHere(...ofOutcome)
      expect(all.json).toEqual({ stored: 0, refused: 150, notAsked: [] })
      const told = all.stderr.match(/^Stored: .*Refused: \d+/gm)
      expect([told?.length, told?.at(-1)]).toEqual([2, "Stored: 0. Refused: 150"])
      expectRefused(yield* runHere(...ofOutcome, "--until", "1 hour"), 1, "--until needs --since, without --outcome.")

      // Another organization's account does not have it, and the provider does not know others
      const { tenant: stranger } = yield* unheardPayment
      const unknown = (organization: string, id: string) =>
        runHere("replay", ...sandbox, "--organization", organization, id)
      expectRefused(yield* unknown(stranger.id, "evt_none"), 1, "The provider does not have the event any more")
      expectRefused(yield* unknown(stranger.id, event), 1, `belongs to organization ${tenant.id}`)
      yield* sql`DELETE FROM payments.receipts WHERE organization_id = ${tenant.id} AND provider_event_id = ${event}`
      expectRefused(yield* unknown(stranger.id, event), 1, "The provider does not have the event any more")
    }
  )

  it.scoped(
    "answers with exit code 1 and a sentence where there is no such receipt, or it can't be replayed",
    function* () {
      const { runHere } = yield* operator
      const { event, tenant } = yield* unheardPayment
      const noReceipt = /^There is no receipt of evt_none in sandbox/
      for (const verb of ["show", "replay"]) {
        expectRefused(yield* runHere(verb, ...sandbox, "evt_none"), 1, noReceipt)
        expectRefused(yield* runHere(verb, "--environment", "production", event), 1, /There is no receipt of evt_/)
      }
      expectRefused(yield* runHere("list", ...sandbox, "--before", "evt_none"), 1, noReceipt)
      const unknown = "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40"
      expectRefused(
        yield* runHere("list", ...sandbox, "--organization", unknown),
        1,
        `There is no organization ${unknown}.`
      )
      yield* inDatabase`
        UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
        WHERE organization_id = ${tenant.id}`
      const missing = yield* runHere("missing", ...sandbox, "--organization", tenant.id, "--since", "1 hour")
      expect(missing).toMatchObject({
        code: 0,
        stdout: "Every event of that time has its receipt, of the accounts that could be asked.\n",
        stderr: expect.stringMatching(new RegExp(`^Not asked: organization ${tenant.id}. No account is connected`))
      })
      expectRefused(yield* runHere("replay", ...sandbox, event), 1, "not linked and connected")
    }
  )

  it.scoped("answers wrong usage with exit code 2, and helps", function* () {
    const { runHere } = yield* operator
    const cases: ReadonlyArray<readonly [args: ReadonlyArray<string>, words: string | RegExp]> = [
      [[], "is not a complete command"],
      [["remove"], "no command 'receipts remove'"],
      [["list"], "--environment"],
      [["list", "--environment", "test"], /sandbox/],
      [["list", ...sandbox, "--outcome", "lost"], /delivered/],
      [["list", ...sandbox, "--organization", "acme"], "--organization must be"],
      [["list", ...sandbox, "--type", "a b"], "--type must be"],
      [["list", ...sandbox, "--since", "yesterday"], "--since must be"],
      [["list", ...sandbox, "--since", "2030-13-45"], "--since must be"],
      // Longer ago than what a date can be
      [["list", ...sandbox, "--since", "1000000000 days"], "--since must be"],
      [["list", ...sandbox, "--limit", "0"], "--limit must be 1 to 100"],
      [["list", ...sandbox, "--limit", "101"], "--limit must be 1 to 100"],
      [["list", ...sandbox, "--limit", "ten"], /integer/],
      [["list", ...sandbox, "--before", ""], "--before must be"],
      [["missing", ...sandbox], "--since"],
      [["missing", ...sandbox, "--since", "soon"], "--since must be"],
      [["missing", ...sandbox, "--since", "1 hour", "--until", "soon"], "--until must be"],
      [["replay", ...sandbox, "--organization", "acme", "evt_1"], "--organization must be"],
      [["show", ...sandbox], /event/i],
      [["show", ...sandbox, "evt 1"], "An event's id at the provider"],
      [["replay", ...sandbox, "e".repeat(256)], "An event's id at the provider"],
      [["replay", ...sandbox, "--force", "evt_1"], "no option --force"]
    ]
    for (const [args, words] of cases) expectRefused(yield* runHere(...args), 2, words)

    const all = expectDone(yield* runHere("--help")).stdout
    for (const verb of ["list", "show", "missing", "replay"]) {
      expect(all).toMatch(new RegExp(`^  receipts ${verb} +[A-Z]`, "m"))
      const help = expectDone(yield* runHere(verb, "--help")).stdout
      expect(help).toContain(`$ connected-payments receipts ${verb} --environment sandbox`)
      expect(help).toContain("--json")
    }
  })
})
