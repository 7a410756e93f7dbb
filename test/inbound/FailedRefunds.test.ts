import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { FailedRefunds } from "../../src/inbound/FailedRefunds.ts"
import { Receipts } from "../../src/inbound/Receipts.ts"
import { eventuallyIs } from "../harness/Eventually.ts"
import { TestMailbox } from "../harness/Mailbox.ts"
import { expectMails, mailsTo, membersOf } from "../harness/Members.ts"
import { onServiceWithMail } from "../harness/SignIn.ts"
import { inAnotherProcess, sendRequest, TestService, testPublicUrl } from "../harness/TestService.ts"
import { newTenant } from "../payments/ConnectedTenant.ts"
import { accepted, newEventId, notification, notify, outcomeOf, received, subscribe, typesTo } from "./Notifications.ts"

const makeShop = Effect.gen(function* () {
  const tenant = yield* newTenant
  const people = yield* membersOf(tenant)
  return { ...tenant, key: yield* tenant.keyOf(["*", "webhook-endpoints:*"]), people }
}).pipe(Effect.orDie)

type Shop = Effect.Effect.Success<typeof makeShop>

const refund = {
  id: "re_1",
  object: "refund",
  amount: 1500,
  charge: "ch_1",
  currency: "brl",
  failure_reason: "expired_or_canceled_card",
  payment_intent: "pi_1",
  status: "failed"
}

const news = (shop: Shop, object: object, type = "refund.failed", id = newEventId()) =>
  notify(notification(shop.accountId, { id, type, object: { ...refund, ...object } }))

const tell = Effect.flatMap(TestService, ({ services }) => Context.get(services, FailedRefunds).tell)

const otherProcess = Effect.flatMap(TestService, ({ options }) =>
  inAnotherProcess(FailedRefunds, FailedRefunds.layer(options))
)

const later = (shop: Shop, time: string) =>
  shop.sql`
    UPDATE payments.failed_refunds SET mail_at = mail_at - ${time}::interval, mailed_at = mailed_at - ${time}::interval
    WHERE organization_id = ${shop.id}`

const statistics = (shop: Shop) =>
  Effect.map(
    sendRequest("GET", `/v2/organizations/${shop.id}/integrations/statistics`, { key: shop.key }),
    ({ json }) => json["payments"]
  )

onServiceWithMail()("a refund that fails after it was made", (it) => {
  it.effect("is told to owners and admins, and counted, days after it succeeded", function* () {
    const { emulator } = yield* TestService
    const shop = yield* makeShop
    const endpoint = yield* subscribe(shop, ["payment.refunded"])
    const { object: charge } = yield* emulator.trigger({ type: "charge.refunded", account: shop.accountId })
    const [made] = yield* Effect.map(shop.atProvider(`/refunds?charge=${charge}`), ({ data }) =>
      Array.from(Object(data), (one) => Object(one))
    )
    expect(made.status).toBe("succeeded")
    yield* emulator.trigger({ type: "refund.failed", account: shop.accountId, refund: made.id })
    yield* eventuallyIs(
      "the record",
      shop.sql`SELECT 1 FROM payments.failed_refunds WHERE organization_id = ${shop.id}`,
      (rows) => rows.length > 0
    )
    yield* tell
    yield* expectMails(shop.people, 1)
    const [mail] = yield* mailsTo(shop.people.owner)
    expect(mail?.headers.get("subject")).toBe("A refund failed in sandbox")
    expect(mail?.text).toContain(`${made.id}: `)
    expect(mail?.text).toContain(`of ${made.payment_intent}, failed (expired_or_canceled_card)`)
    expect(mail?.text).toMatch(/BRL\s15\.00|R\$\s?15\.00/)
    expect(mail?.text).toContain(`${testPublicUrl}/v2/organizations/${shop.id}/provider/refunds/${made.id}`)
    expect((yield* shop.get(`/refunds/${made.id}`)).json).toMatchObject({ status: "failed" })
    expect(yield* statistics(shop)).toMatchObject([{ currency: "brl", refundFailed: { count: 1, amount: "1500" } }])
    // The catalog has no event for it
    expect(yield* typesTo(endpoint.id)).toEqual(["payment.refunded"])
  })

  it.effect("is recorded once, whichever notifications tell of it, in any order", function* () {
    const shop = yield* makeShop
    const [first, second] = [newEventId(), newEventId()]
    for (const id of [first, first]) yield* accepted(news(shop, {}, "refund.updated", id))
    yield* accepted(news(shop, {}, "refund.failed", second))
    yield* accepted(news(shop, {}, "charge.refund.updated"))
    yield* accepted(news(shop, { id: "re_2", status: "canceled", failure_reason: undefined }, "refund.updated"))
    for (const status of ["pending", "requires_action", "succeeded", null]) {
      yield* accepted(news(shop, { id: "re_3", status }, "refund.updated"))
    }
    expect([yield* outcomeOf(first), yield* outcomeOf(second)]).toEqual(["ignored", "ignored"])
    yield* tell
    yield* expectMails(shop.people, 1)
    const [mail] = yield* mailsTo(shop.people.admin)
    expect(mail?.headers.get("subject")).toBe("2 refunds failed in sandbox")
    expect(mail?.text.match(/^- re_\d/gm)).toEqual(["- re_1", "- re_2"])
    expect(mail?.text).toMatch(/re_2: .* of pi_1, canceled$/m)
    expect(yield* statistics(shop)).toMatchObject([{ refundFailed: { count: 2, amount: "3000" } }])
  })

  it.effect("that is malformed is reported; none of another or a disconnected account is recorded", function* () {
    const shop = yield* makeShop
    const [odd, unknown] = [newEventId(), newEventId()]
    yield* accepted(news(shop, { amount: "much", currency: "\u0000" }, "refund.failed", odd))
    yield* accepted(news({ ...shop, accountId: "acct_0000000000000000" }, {}, "refund.failed", unknown))
    expect([yield* outcomeOf(odd), yield* outcomeOf(unknown)]).toEqual(["malformed", "unlinked"])
    yield* accepted(
      notify(
        notification(shop.accountId, {
          type: "account.application.deauthorized",
          object: { id: "ca_1", object: "application" },
          created: Math.floor(Date.now() / 1000) + 60
        })
      )
    )
    yield* accepted(news(shop, {}))
    yield* tell
    yield* expectMails(shop.people)
    expect(yield* shop.sql`SELECT 1 FROM payments.failed_refunds WHERE organization_id = ${shop.id}`).toEqual([])
  })

  it.scoped("is told by one of the processes, and further ones an hour later, all in one mail", function* () {
    const processes = yield* Effect.all([otherProcess, otherProcess, otherProcess])
    const shop = yield* makeShop
    yield* accepted(news(shop, {}))
    const all = Effect.forEach([...processes, ...processes], (one) => one.tell, { concurrency: "unbounded" })
    yield* all
    yield* expectMails(shop.people, 1)
    for (let number = 2; number < 30; number++) yield* accepted(news(shop, { id: `re_${number}` }))
    yield* all
    yield* later(shop, "59 minutes")
    yield* all
    yield* expectMails(shop.people, 1)
    yield* later(shop, "1 minute")
    yield* all
    yield* expectMails(shop.people, 2)
    const [, mail] = yield* mailsTo(shop.people.owner)
    expect(mail?.headers.get("subject")).toBe("28 refunds failed in sandbox")
    expect(mail?.text.match(/^- re_/gm)).toHaveLength(20)
    expect(mail?.text).toContain("- and 8 more")
    yield* later(shop, "1 day")
    yield* all
    yield* expectMails(shop.people, 2)
  })

  it.effect("is told when the mail server works again, and one that refuses keeps nobody else's back", function* () {
    const mailbox = yield* TestMailbox
    const [refused, other] = [yield* makeShop, yield* makeShop]
    yield* accepted(news(refused, {}))
    mailbox.refuse({ code: 421, message: () => "Try later" })
    yield* tell
    mailbox.refuse()
    yield* expectMails(refused.people)
    yield* accepted(news(other, {}))
    yield* tell
    yield* expectMails(other.people, 1)
    yield* expectMails(refused.people)
    yield* later(refused, "5 minutes")
    yield* tell
    yield* expectMails(refused.people, 1)
  })

  it.effect("is found among the events that left no receipt, and recorded from there", function* () {
    const { emulator, services, sql } = yield* TestService
    const shop = yield* makeShop
    const { events } = yield* emulator.trigger({ type: "refund.failed", account: shop.accountId })
    const id = events.find(({ type }) => type === "refund.failed")?.id ?? ""
    yield* received(id)
    yield* sql`DELETE FROM payments.receipts WHERE organization_id = ${shop.id}`
    yield* sql`DELETE FROM payments.failed_refunds WHERE organization_id = ${shop.id}`
    const receipts = Context.get(services, Receipts)
    const missing = yield* receipts.missing({
      environment: "sandbox",
      organizationId: shop.id,
      since: new Date(Date.now() - 3_600_000),
      until: new Date(Date.now() + 60_000)
    })
    expect(missing.events.map(({ providerEventId }) => providerEventId)).toContain(id)
    yield* receipts.replay({ environment: "sandbox", providerEventId: id, organizationId: shop.id })
    expect(yield* sql`SELECT 1 FROM payments.failed_refunds WHERE organization_id = ${shop.id}`).toHaveLength(1)
  })
})
