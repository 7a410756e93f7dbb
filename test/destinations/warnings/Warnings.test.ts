import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Warnings } from "../../../src/destinations/warnings/Warnings.ts"
import { mostCounted } from "../../../src/platform/kit/Request.ts"
import { TestMailbox } from "../../harness/Mailbox.ts"
import { expectMails, mailsTo, membersOf } from "../../harness/Members.ts"
import { onServiceWithMail } from "../../harness/SignIn.ts"
import { inAnotherProcess, inDatabase, TestService, testPublicUrl } from "../../harness/TestService.ts"
import { atEndpoints, makeTenant, subscribe } from "../../inbound/Notifications.ts"
import { storeDeliveries } from "../deliveries/StoredDeliveries.ts"

const makeShop = Effect.gen(function* () {
  const tenant = yield* makeTenant
  const people = yield* membersOf(tenant)
  const { id } = yield* subscribe(tenant, ["payment.succeeded"], "http://localhost:9/secret-path")
  yield* atEndpoints(tenant, "PATCH", `/${id}`, { name: "Orders of the shop" })
  return { tenant, people, endpointId: id, of: { organizationId: tenant.id, endpointId: id } }
}).pipe(Effect.orDie)

const scan = Effect.flatMap(TestService, ({ services }) => Context.get(services, Warnings).scan)

/** Looks once, and expects so many mails from then and before. */
const expectMailsOfScan = (...expected: Parameters<typeof expectMails>) =>
  Effect.zipRight(scan, expectMails(...expected))

/** As if so much time had passed since the last warning. */
const later = (endpointId: string, time: string) =>
  inDatabase`
    UPDATE payments.failure_warnings SET quiet_until = quiet_until - ${time}::interval
    WHERE endpoint_id = ${endpointId}`

const otherProcess = Effect.flatMap(TestService, ({ options }) => inAnotherProcess(Warnings, Warnings.layer(options)))

onServiceWithMail()("a warning", (it) => {
  it.effect("at three definitive failures tells owners and admins what fails, why, and what to do", function* () {
    const { endpointId, of, people, tenant } = yield* makeShop
    yield* storeDeliveries({ ...of, finishedAgo: 23 * 3600 })
    yield* storeDeliveries({ ...of, finishedAgo: 60 })
    yield* expectMailsOfScan(people)
    yield* storeDeliveries({ ...of, errorCode: "timeout", httpStatus: null })
    yield* expectMailsOfScan(people, 1)
    const [mail] = yield* mailsTo(people.owner)
    expect(mail?.to).toEqual([people.owner])
    expect(mail?.headers.get("subject")).toBe("Webhook endpoint failing in sandbox: Orders of the shop")
    const text = mail?.text ?? ""
    expect(text).toContain("Orders of the shop")
    expect(text).toContain("localhost:9")
    expect(text).toContain("sandbox")
    const since = new Date(Date.now() - 23 * 3600_000).toISOString().slice(0, 13).replace("T", " ")
    expect(text).toMatch(new RegExp(`3 deliveries since ${since}:\\d\\d UTC`))
    expect(text.indexOf("2 times: it answered with an error (HTTP 503)")).toBeGreaterThan(0)
    expect(text.indexOf("1 time: it did not answer in time")).toBeGreaterThan(text.indexOf("2 times"))
    expect(text).toContain(
      `${testPublicUrl}/v2/organizations/${tenant.id}/integrations/endpoints/${endpointId}/deliveries?state=failed`
    )
    expect(text).not.toMatch(/secret-path|whsec_/)
  })

  it.effect("of very many failures counts them up to a bound, and says so", function* () {
    const { of, people } = yield* makeShop
    yield* storeDeliveries({ ...of, count: mostCounted + 20, finishedAgo: 60 })
    yield* scan
    const [mail] = yield* mailsTo(people.owner)
    expect(mail?.text).toContain("10000 or more deliveries since")
    expect(mail?.text).toContain("10000 times: it answered with an error")
  })

  it.effect("does not come of tests, older failures, deliveries that wait or arrived, or two endpoints", function* () {
    const { of, people, tenant } = yield* makeShop
    const other = yield* subscribe(tenant)
    yield* storeDeliveries({ ...of, count: 2 })
    yield* storeDeliveries({ ...of, count: 5, test: true })
    yield* storeDeliveries({ ...of, count: 5, finishedAgo: 24 * 3600 + 60 })
    yield* storeDeliveries({ ...of, count: 5, state: "delivered" })
    yield* storeDeliveries({ ...of, count: 5, state: "queued", errorCode: "timeout" })
    yield* storeDeliveries({ ...of, endpointId: other.id, count: 2 })
    yield* expectMailsOfScan(people)
  })

  it.effect("comes once a day for each endpoint", function* () {
    const { endpointId, of, people, tenant } = yield* makeShop
    const other = yield* subscribe(tenant)
    yield* storeDeliveries({ ...of, count: 3 })
    yield* scan
    yield* storeDeliveries({ ...of, count: 3 })
    yield* later(endpointId, "23 hours 59 minutes")
    yield* expectMailsOfScan(people, 1)
    // Another endpoint's is its own
    yield* storeDeliveries({ ...of, endpointId: other.id, count: 3 })
    yield* expectMailsOfScan(people, 2)
    yield* later(endpointId, "1 minute")
    yield* expectMailsOfScan(people, 3)
  })

  it.scoped("is sent by one of the processes that look at the same time", function* () {
    const processes = yield* Effect.all([otherProcess, otherProcess, otherProcess, otherProcess])
    const shops = yield* Effect.all(Array.from({ length: 4 }, () => makeShop))
    for (const { of } of shops) yield* storeDeliveries({ ...of, count: 3 })
    const rounds = processes.flatMap((one) => [one, one, one])
    yield* Effect.forEach(rounds, (process) => process.scan, { concurrency: "unbounded" })
    for (const { people } of shops) {
      yield* expectMails(people, 1)
    }
  })

  it.effect("is tried again at the next look where the mail server is not ready", function* () {
    const mailbox = yield* TestMailbox
    const { of, people } = yield* makeShop
    yield* storeDeliveries({ ...of, count: 3 })
    mailbox.refuse({ code: 451, message: () => "Try again later" })
    yield* Effect.ensuring(
      scan,
      Effect.sync(() => mailbox.refuse())
    )
    yield* expectMails(people)
    yield* expectMailsOfScan(people, 1)
    yield* expectMailsOfScan(people, 1)
  })

  it.effect("that a mailbox can't take for now keeps nobody else's back, and is tried again", function* () {
    const mailbox = yield* TestMailbox
    const [first, second] = [yield* makeShop, yield* makeShop]
    yield* inDatabase`DELETE FROM payments.memberships WHERE organization_id = ${first.tenant.id} AND role <> 'owner'`
    yield* storeDeliveries({ ...first.of, count: 3 })
    yield* storeDeliveries({ ...second.of, count: 3 })
    mailbox.refuseTo(first.people.owner)
    yield* Effect.ensuring(
      scan,
      Effect.sync(() => mailbox.refuseTo())
    )
    yield* expectMails(first.people)
    yield* expectMails(second.people, 1)
    yield* expectMailsOfScan(first.people, 1, 0)
  })

  it.effect("is one of few tries while the mail server takes none, and each gets its turn", function* () {
    const mailbox = yield* TestMailbox
    const shops = yield* Effect.replicateEffect(makeShop, 8)
    for (const { of } of shops) yield* storeDeliveries({ ...of, count: 3 })
    const before = mailbox.offered()
    mailbox.refuse({ code: 451, message: () => "Try again later" })
    const tried = inDatabase`
      SELECT 1 FROM payments.failure_warnings
      WHERE endpoint_id = ANY (${shops.map(({ endpointId }) => endpointId)}::uuid[])`
    yield* Effect.ensuring(
      Effect.gen(function* () {
        yield* scan
        // An owner and an admin each
        expect(mailbox.offered() - before).toBe(2 * 5)
        expect(yield* tried).toHaveLength(5)
        yield* scan
        expect(mailbox.offered() - before).toBe(2 * 10)
        expect(yield* tried).toHaveLength(8)
      }),
      Effect.sync(() => mailbox.refuse())
    )
    yield* scan
    for (const { people } of shops) yield* expectMails(people, 1)
  })

  it.effect("that the mail server may have taken, though it did not say so, is not sent again that day", function* () {
    const mailbox = yield* TestMailbox
    const { endpointId, of, people } = yield* makeShop
    yield* storeDeliveries({ ...of, count: 3 })
    mailbox.breakOff(true)
    yield* Effect.ensuring(
      scan,
      Effect.sync(() => mailbox.breakOff(false))
    )
    yield* later(endpointId, "23 hours 59 minutes")
    yield* expectMailsOfScan(people, 1)
    yield* later(endpointId, "1 minute")
    yield* expectMailsOfScan(people, 2)
  })

  it.effect("that a process claimed and died before it sent it is sent by another one soon after", function* () {
    const { endpointId, of, people } = yield* makeShop
    yield* storeDeliveries({ ...of, count: 3 })
    // It gets as far as asking who is to be told
    yield* inDatabase`ALTER TABLE payments.memberships RENAME TO away`
    yield* Effect.exit(scan)
    yield* inDatabase`ALTER TABLE payments.away RENAME TO memberships`
    yield* expectMailsOfScan(people)
    yield* later(endpointId, "5 minutes")
    yield* expectMailsOfScan(people, 1)
    expect(
      yield* inDatabase`SELECT 1 FROM payments.failure_warnings WHERE endpoint_id = ${endpointId} AND sent_at IS NOT NULL`
    ).toHaveLength(1)
  })

  it.effect("that the mail server refuses for good rests for an hour, and keeps nobody else's back", function* () {
    const mailbox = yield* TestMailbox
    const [first, second] = [yield* makeShop, yield* makeShop]
    yield* storeDeliveries({ ...first.of, count: 3 })
    yield* storeDeliveries({ ...second.of, count: 3 })
    const before = mailbox.offered()
    mailbox.refuse({ code: 554, message: () => "No" })
    yield* Effect.ensuring(
      scan,
      Effect.sync(() => mailbox.refuse())
    )
    expect(mailbox.offered() - before).toBe(4)
    yield* expectMailsOfScan(first.people)
    yield* later(first.endpointId, "1 hour")
    yield* expectMailsOfScan(first.people, 1)
    yield* expectMails(second.people)
  })

  it.effect("does not come of a deleted endpoint", function* () {
    const { endpointId, of, people } = yield* makeShop
    yield* storeDeliveries({ ...of, count: 3, errorCode: "endpoint_deleted" })
    yield* inDatabase`UPDATE payments.endpoints SET deleted_at = now() WHERE id = ${endpointId}`
    yield* expectMailsOfScan(people)
  })
})
