import { Context, Effect, Option } from "effect"
import { Accounts } from "../../../src/payments/Accounts.ts"
import { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { exampleIdempotencyKey } from "../../../src/surface/docs/OpenApiDocument.ts"
import { type Consumer, makeConsumer } from "../../harness/Consumer.ts"
import { eventually, eventuallyDone } from "../../harness/Eventually.ts"
import { TestMailbox } from "../../harness/Mailbox.ts"
import { cookieOf, tokenIn } from "../../harness/SignIn.ts"
import { type Answer, inDatabase, TestService, testPublicUrl } from "../../harness/TestService.ts"
import { signature, thinNotification } from "../../inbound/Notifications.ts"
import { control, payAt } from "../../payments/ConnectedTenant.ts"
import { png } from "../../payments/images/Pictures.ts"
import { type Call, makeRecorder, type Parameter, type Recorder, type Recording } from "./ExampleRecorder.ts"

/**
 * A shop's first day: every operation of the API is called once with success, in an order in which a shop could, and
 * most errors come up once. What is sent and answered becomes the examples of the OpenAPI document.
 */

/** Of the form of the service's secrets, and plainly none. */
export const exampleSecret = "example-".repeat(6).slice(0, 43)

/** In place of the emulator's address. */
const exampleProviderUrl = "https://checkout.example"

const textIn = (answer: Answer, ...path: ReadonlyArray<string>): string => {
  let value: unknown = answer.json
  for (const key of path) value = Object(value)[key]
  if (typeof value !== "string") throw new Error(`No ${path.join(".")} in ${answer.text}`)
  return value
}

/** What a signed-in person's browser sends along. */
const byCookie = (cookie: string) => ({ headers: { cookie, origin: testPublicUrl } })

const signInAs = (recorder: Recorder, email: string, nth: number) =>
  Effect.gen(function* () {
    const mailbox = yield* TestMailbox
    yield* recorder.call("signIn.requestLink", { body: { email }, status: 202 })
    const token = tokenIn(yield* mailbox.mailTo(email, nth))
    recorder.replaced.set(token, exampleSecret)
    yield* recorder.call("signIn.preview", { body: { token } })
    return byCookie(cookieOf(yield* recorder.call("signIn.redeem", { body: { token } })))
  })

const owner = "ana@shop.example"
const colleague = "ben@shop.example"

/** An owner looks at both ways to connect an account, takes the one by onboarding, and disconnects it again. */
const connectAnAccount = (recorder: Recorder, ana: ReturnType<typeof byCookie>, organizationId: OrganizationId) =>
  Effect.gen(function* () {
    const { call, refused, replaced } = recorder
    const body = { environment: "sandbox" }
    for (const path of ["/oauth", "/setup"]) {
      // After the emulator's own address, which is replaced first
      replaced.set(`${exampleProviderUrl}${path}`, `https://connect.stripe.com${path}`)
    }
    const visit = (url: string, form?: Readonly<Record<string, string>>) =>
      Effect.promise(async () => {
        const sent = form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }
        return (await fetch(url, { redirect: "manual", ...sent })).headers.get("location") ?? ""
      })

    const consent = textIn(yield* call("accountConnection.startOauth", { ...ana, body }), "url")
    replaced.set(new URL(consent).searchParams.get("state") ?? "", exampleSecret)
    const declined = new URL(yield* visit(consent, { action: "decline", account: "new" }))
    yield* call("accountPages.authorized", { ...ana, parameters: Object.fromEntries(declined.searchParams) })

    const link = textIn(yield* call("accountConnection.startOnboarding", { ...ana, body }), "url")
    replaced.set(link.split("/").at(-1) ?? "", exampleSecret.slice(0, 24))
    yield* visit(yield* visit(link), { action: "finish", name: "Bakery" })
    yield* call("accountPages.returned", { parameters: body })
    yield* call("accountPages.refresh", { parameters: body })
    // The notification of it comes to nobody's examples
    yield* eventuallyDone(
      "the receipt of the account's news",
      Effect.map(
        inDatabase`SELECT 1 FROM payments.receipts WHERE organization_id = ${organizationId} AND type = 'account.updated'`,
        (rows) => rows.length > 0
      )
    )
    const accountId = textIn(yield* call("accountConnection.get", ana), "accountId")
    yield* refused("AccountAlreadyConnected", "accountConnection.startOauth", { ...ana, body })
    yield* call("accountConnection.disconnect", { ...ana, parameters: { accountId } })
  })

/** A person signs in, and sets up an organization with people, return pages, an account and a key. */
const setUp = (recorder: Recorder) =>
  Effect.gen(function* () {
    const { emulator, makeKey, services, sql } = yield* TestService
    const mailbox = yield* TestMailbox
    const { call, refused, replaced } = recorder
    yield* call("signIn.page")
    yield* call("invitation.page")
    const ana = yield* signInAs(recorder, owner, 1)
    const created = yield* call("organizations.create", { ...ana, body: { name: "Bakery" }, status: 201 })
    const organizationId = OrganizationId.make(textIn(created, "id"))
    yield* refused("OrganizationAlreadyExists", "organizations.create", { ...ana, body: { name: "Another" } })
    yield* call("organizations.rename", { ...ana, parameters: { organizationId }, body: { name: "Corner bakery" } })
    yield* refused("SessionInvalid", "session.get", byCookie("__Host-svc_session=unknown"))
    yield* refused("OriginNotTrusted", "session.endAll", { headers: { cookie: ana.headers.cookie } })
    yield* call("session.selectWorkspace", { ...ana, body: { environment: "sandbox" } })
    yield* call("session.get", ana)
    yield* call("session.list", ana)

    const invite = { email: colleague, role: "developer", environments: ["sandbox"] }
    yield* call("invitations.create", { ...ana, body: invite, status: 201 })
    const token = tokenIn(yield* mailbox.mailTo(colleague))
    replaced.set(token, exampleSecret)
    yield* call("invitations.list", ana)
    yield* call("invitation.preview", { body: { token } })
    const accepted = yield* call("invitation.accept", { body: { token } })
    const ben = byCookie(cookieOf(accepted))
    const personId = textIn(accepted, "person", "id")
    yield* call("members.list", ana)
    yield* refused("WorkspaceAccessRequired", "session.selectWorkspace", {
      ...ben,
      body: { environment: "production" }
    })
    yield* call("members.update", {
      ...ana,
      parameters: { personId },
      body: { environments: ["sandbox", "production"] }
    })
    const other = yield* recorder.send("invitations.create", {
      ...ana,
      body: { email: "cleo@shop.example", role: "viewer" }
    })
    yield* call("invitations.revoke", { ...ana, parameters: { id: textIn(other, "id") } })

    const url = "https://shop.example"
    const pages = { successUrl: `${url}/thanks?session_id={CHECKOUT_SESSION_ID}`, cancelUrl: `${url}/cart` }
    yield* call("returnUrls.set", { ...ana, body: pages })
    yield* call("returnUrls.get", ana)
    yield* connectAnAccount(recorder, ana, organizationId)

    const grants = ["*", "webhook-endpoints:*", "audit-log:read", "customers:read"]
    const shopsKey = yield* call("apiKeys.create", { ...ana, body: { name: "Shop", permissions: grants }, status: 201 })
    const key = textIn(shopsKey, "key")
    replaced.set(key, `pk_test_${exampleSecret}`)
    yield* call("apiKeys.list", ana)
    const old = yield* recorder.send("apiKeys.create", { ...ana, body: { name: "Old", permissions: ["*"] } })
    yield* call("apiKeys.revoke", { ...ana, parameters: { id: textIn(old, "id") } })
    yield* call("currentKey.get", { key })

    const accountId = yield* emulator.ensureAccount()
    yield* Context.get(services, Accounts).link({ organizationId, environment: "sandbox" }, accountId)
    yield* sql`UPDATE payments.provider_accounts SET had_payments_before = true WHERE account_id = ${accountId}`
    const star = yield* makeKey(organizationId, ["*"])
    const reader = yield* makeKey(organizationId, ["products:read"])
    const live = yield* makeKey(organizationId, ["*", "webhook-endpoints:*"], { mode: "live" })
    return { accountId, ana, ben, key, live, organizationId, personId, reader, star }
  })

type Shop = Effect.Effect.Success<ReturnType<typeof setUp>>

/** What sells: products, prices, sessions, codes, links and pages. */
const sell = (recorder: Recorder, { key, organizationId }: Shop) =>
  Effect.gen(function* () {
    const { baseUrl } = yield* TestService
    const { call } = recorder
    const at = (parameters: Readonly<Record<string, Parameter>> = {}, body?: unknown): Call => ({
      key,
      parameters: { organizationId, ...parameters },
      ...(body === undefined ? {} : { body })
    })
    const sent = (body: unknown): Call => at({}, body)
    const create = (key: string, body: unknown) => call(`${key}.create`, sent(body))
    const image = yield* call("productImages.upload", { ...at(), raw: png(), headers: { "content-type": "image/png" } })
    yield* call("publicImages.get", { parameters: { file: textIn(image, "url").split("/").at(-1) ?? "" } })
    const product = yield* create("products", {
      name: "Coffee beans, 1 kg",
      description: "Roasted every Monday",
      default_price_data: { currency: "brl", unit_amount: 1500 }
    })
    const productId = textIn(product, "id")
    yield* call("products.get", at({ id: productId }))
    yield* call("products.update", at({ id: productId }, { name: "Coffee beans, 500 g" }))
    yield* call("products.list", at({ limit: 1 }))
    const price = yield* create("prices", {
      currency: "brl",
      unit_amount: 1500,
      product_data: { name: "Ground coffee, 500 g" }
    })
    const priceId = textIn(price, "id")
    yield* call("prices.get", at({ id: priceId }))
    yield* call("prices.update", at({ id: priceId }, { nickname: "Ground", lookup_key: "ground-500g" }))
    yield* call("prices.list", at({ lookup_keys: ["ground-500g"] }))
    const session = yield* create("checkoutSessions", {
      mode: "payment",
      line_items: [{ price: priceId, quantity: 2 }],
      client_reference_id: "order-4711"
    })
    const sessionId = textIn(session, "id")
    yield* call("checkoutSessions.lineItems", at({ id: sessionId }))
    const left = yield* recorder.send(
      "checkoutSessions.create",
      sent({ mode: "payment", line_items: [{ price: priceId, quantity: 1 }] })
    )
    yield* call("checkoutSessions.expire", at({ id: textIn(left, "id") }))

    const code = yield* create("promotionCodes", {
      code: "SUMMER25",
      discount: { percent_off: 25 },
      duration: "once",
      max_redemptions: 100
    })
    const codeId = textIn(code, "id")
    recorder.replaced.set(textIn(code, "coupon", "id"), "svc_0123456789abcdef0123456789abcdef")
    yield* call("promotionCodes.get", at({ id: codeId }))
    yield* call("promotionCodes.list", at({ active: "true" }))
    const campaign = { active: false, metadata: { campaign: "summer" } }
    yield* call("promotionCodes.update", at({ id: codeId }, campaign))
    const link = yield* create("paymentLinks", {
      line_items: [{ price: priceId, quantity: 1 }],
      restrictions: { completed_sessions: { limit: 100 } }
    })
    const linkId = textIn(link, "id")
    yield* call("paymentLinks.get", at({ id: linkId }))
    yield* call("paymentLinks.lineItems", at({ id: linkId }))
    yield* call("paymentLinks.list", at({ limit: 1 }))
    yield* call("paymentLinks.update", at({ id: linkId }, campaign))

    const page = yield* create("checkoutPages", {
      title: "Coffee beans",
      text: "Roasted every Monday.",
      items: [{ price: priceId, quantity: 1, adjustableQuantity: { minimum: 1, maximum: 5 } }],
      collect: { phoneNumber: true },
      allowPromotionCodes: true,
      successText: "Thank you! Your beans leave on Monday."
    })
    const [pageId, slug] = [textIn(page, "id"), textIn(page, "slug")]
    recorder.replaced.set(slug, "k3v7qz2mxw5hbn4tcyra")
    const shown = yield* call("payPages.page", { parameters: { slug } })
    const hidden = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(shown.text)?.[1] ?? ""
    const version = hidden("version")
    recorder.replaced.set(version, "11ac111f56ed8ef4c863315644f14814")
    yield* call("payPages.submit", {
      parameters: { slug },
      form: { attempt: hidden("attempt"), version, q0: "2" },
      status: 303
    })
    yield* call("payPages.thanks", { parameters: { slug } })
    yield* call("checkoutPages.get", at({ id: pageId }))
    yield* call("checkoutPages.list", at({ limit: 1 }))
    yield* call("checkoutPages.update", at({ id: pageId }, { active: false }))
    yield* call("checkoutPages.delete", at({ id: pageId }))
    recorder.replaced.set(baseUrl, testPublicUrl)
    return { at, create, sent, session, sessionId }
  })

type Sale = Effect.Effect.Success<ReturnType<typeof sell>>

/** Waits until the newest of a list has ended. */
const untilEnded = ({ send }: Recorder, list: string, call: Call) =>
  eventuallyDone(
    `the end of the newest of ${list}`,
    Effect.map(send(list, call), ({ json }) => (Object(newestIn(json)).finishedAt ?? null) !== null)
  )

/** Waits until there is one in a list. */
const untilThere = ({ send }: Recorder, list: string, call: Call) =>
  eventually(
    `one of ${list}`,
    Effect.map(send(list, call), ({ json }) => Option.fromNullable(newestIn(json)))
  )

const newestIn = (json: Answer["json"]): unknown => Array.from(Object(json["data"]))[0]

/** Destinations and what is delivered to them, events, re-sends and replays. */
const deliver = (recorder: Recorder, sale: Sale, consumer: Consumer) =>
  Effect.gen(function* () {
    const { call, refused } = recorder
    const { at, create } = sale
    const endpoint = {
      name: "Shop",
      url: consumer.url,
      events: ["payment.succeeded", "payment.refunded"],
      filters: { currencies: ["brl"] }
    }
    const id = textIn(yield* create("endpoints", endpoint), "id")
    yield* call("endpoints.list", at())
    yield* call("endpoints.get", at({ id }))
    yield* call("endpoints.update", at({ id }, { filters: { currencies: ["brl"], amountMin: 500 } }))
    yield* payAt(sale.session.json["url"])
    yield* untilEnded(recorder, "deliveries.list", at({ id, limit: 1 }))
    const paid = yield* call("checkoutSessions.get", at({ id: sale.sessionId }))
    yield* call("checkoutSessions.list", at({ limit: 1 }))
    const paymentIntentId = textIn(paid, "payment_intent")
    const delivery = newestIn((yield* call("deliveries.list", at({ id, limit: 1 }))).json)
    yield* call("deliveries.listAll", at({ endpoint_id: id, state: "delivered", limit: 1 }))
    yield* call("deliveries.get", at({ id: Object(delivery).id }))
    yield* refused("DeliveryNotFailed", "deliveries.retry", at({ id: Object(delivery).id }))
    yield* call("events.list", at({ type: "payment.succeeded", payment_id: paymentIntentId }))
    yield* call("events.get", at({ id: Object(delivery).eventId }))

    // The consumer breaks, is repaired, and gets what it missed
    consumer.answer(400)
    const refund = yield* create("refunds", {
      payment_intent: paymentIntentId,
      amount: 1500,
      reason: "requested_by_customer"
    })
    const failed = yield* untilThere(recorder, "deliveries.list", at({ id, state: "failed" }))
    yield* call("deliveries.retry", at({ id: Object(failed).id }))
    yield* untilEnded(recorder, "deliveries.list", at({ id, limit: 1 }))
    consumer.answer(204)
    const since = new Date(Date.now() - 3_600_000).toISOString()
    const recovery = yield* call("recoveries.start", { ...at({ id }), body: { since }, status: 202 })
    yield* untilEnded(recorder, "recoveries.list", at({ id, limit: 1 }))
    yield* call("recoveries.list", at({ id, limit: 1 }))
    yield* call("recoveries.get", at({ id, recoveryId: textIn(recovery, "id") }))
    yield* untilEnded(recorder, "deliveries.list", at({ id, limit: 1 }))
    const range = { since, types: ["payment.succeeded"] }
    const replay = yield* call("eventReplays.start", { ...at({ id }), body: range, status: 202 })
    const replayId = textIn(replay, "id")
    yield* untilEnded(recorder, "eventReplays.list", at({ id, limit: 1 }))
    yield* call("eventReplays.list", at({ id, limit: 1 }))
    yield* call("eventReplays.get", at({ id, replayId }))
    yield* call("eventReplays.cancel", at({ id, replayId }))
    yield* call("endpoints.rotateSecret", at({ id }))
    yield* call("endpoints.test", at({ id }, { type: "payment.succeeded" }))
    yield* refused("EventTypeNotSubscribed", "endpoints.test", at({ id }, { type: "payout.paid" }))

    // What comes while it is paused is skipped
    yield* recorder.send("endpoints.update", at({ id }, { active: false }))
    yield* refused("EndpointPaused", "endpoints.test", at({ id }, { type: "payment.succeeded" }))
    yield* create("eventTriggers", { type: "payment.succeeded" })
    yield* untilThere(recorder, "endpoints.skipped", at({ id }))
    yield* call("endpoints.skipped", at({ id }))
    const after = String((Date.now() - 60_000) * 1000)
    yield* call("eventStream.open", at({ types: "payment.refunded", after, follow: "false" }))
    yield* call("endpoints.delete", at({ id }))
    yield* refused("EndpointDeleted", "recoveries.start", at({ id }, { since }))
    yield* call("audit.list", at({ limit: 2 }))
    return { paymentIntentId, refundId: textIn(refund, "id") }
  })

/** Reads what was paid, and what followed from it. */
const report = (
  recorder: Recorder,
  { accountId: account }: Shop,
  { at, sent }: Sale,
  paid: { readonly paymentIntentId: string; readonly refundId: string }
) =>
  Effect.gen(function* () {
    const { emulator } = yield* TestService
    const { call, send } = recorder
    const intent = yield* call("paymentIntents.get", at({ id: paid.paymentIntentId }))
    const charge = yield* call("charges.get", at({ id: textIn(intent, "latest_charge") }))
    yield* call("paymentIntents.list", at({ limit: 1 }))
    yield* call("search.payments", sent({ client_reference_id: "order-4711" }))
    yield* call("charges.list", at({ limit: 1, created_gte: Math.floor(Date.now() / 1000) - 86_400 }))
    yield* call("refunds.get", at({ id: paid.refundId }))
    yield* call("refunds.list", at({ charge: textIn(charge, "id") }))
    const { object: disputeId } = yield* emulator.trigger({ type: "charge.dispute.created", account })
    yield* call("disputes.get", at({ id: disputeId }))
    yield* call("disputes.list", at({ limit: 1 }))

    const recurring = yield* send(
      "prices.create",
      sent({ currency: "brl", unit_amount: 2900, product_data: { name: "Club" }, recurring: { interval: "month" } })
    )
    const session = yield* send(
      "checkoutSessions.create",
      sent({ mode: "subscription", line_items: [{ price: textIn(recurring, "id"), quantity: 1 }] })
    )
    yield* payAt(session.json["url"])
    const subscribed = yield* send("checkoutSessions.get", at({ id: textIn(session, "id") }))
    const id = textIn(subscribed, "subscription")
    yield* call("subscriptions.get", at({ id }))
    yield* call("subscriptions.list", at({ status: "all", limit: 1 }))
    yield* call("subscriptions.update", at({ id }, { cancel_at_period_end: true }))
    yield* call("subscriptions.cancel", at({ id }))
    yield* call("customers.get", at({ id: textIn(subscribed, "customer") }))
    yield* call("customers.list", at({ limit: 1 }))
    const payoutId = yield* emulator.orderPayout({ account, amount: 500, currency: "brl", state: "paid" })
    yield* call("payouts.get", at({ id: payoutId }))
    yield* call("payouts.list", at({ limit: 1 }))
    yield* call("account.get", at())
    yield* call("account.balance", at())
    // As for most accounts: the platform doesn't see where they are paid out
    yield* control(account, false)
    yield* call("account.payoutSettings", at())
    yield* call("balanceTransactions.list", at({ type: "charge", limit: 1 }))
  })

/** What the provider itself sends, and what watches the process. */
const receive = (recorder: Recorder, { accountId }: Shop) =>
  Effect.gen(function* () {
    const { call, refused } = recorder
    const json = { "content-type": "application/json" }
    const notification = JSON.stringify({
      id: "evt_3Q1w2E3r4T5y6U7i8O9p0A1s",
      object: "event",
      account: accountId,
      api_version: "2026-10-28.endive",
      created: Math.floor(Date.now() / 1000),
      data: { object: { id: "cus_Q1w2E3r4T5y6U7", object: "customer" } },
      livemode: false,
      type: "customer.updated"
    })
    const signed = { ...json, "stripe-signature": signature(notification) }
    yield* call("inbound.receive", { raw: notification, headers: signed })
    yield* refused("SignatureInvalid", "inbound.receive", {
      raw: notification,
      headers: { ...json, "stripe-signature": "t=1,v1=00" }
    })
    const thin = thinNotification(accountId, { id: "evt_test_65Q1w2E3r4T5y6U7i8O9p0A1s2" })
    yield* call("inbound.receiveThin", { raw: thin, headers: { ...json, "stripe-signature": signature(thin) } })
    yield* call("health.live")
    yield* call("health.ready")
  })

/** Requests that are refused, one for each error that a caller can bring about. */
const refuse = (recorder: Recorder, shop: Shop, { at, sent }: Sale) =>
  Effect.gen(function* () {
    const { emulator, organization, request } = yield* TestService
    const { refused, send } = recorder
    const { accountId: account, live, organizationId, reader, star } = shop
    const parameters = { organizationId }
    yield* refused("AuthenticationRequired", "products.list", { parameters })
    yield* refused("ApiKeyInvalid", "products.list", { parameters, key: "pk_test_unknown" })
    yield* refused("OrganizationAccessDenied", "products.list", at({ organizationId: organization.id }))
    yield* refused("PermissionDenied", "products.create", { parameters, key: reader, body: { name: "Tea" } })
    yield* refused("EndpointManagementForbidden", "endpoints.list", { parameters, key: star })
    yield* refused("ProviderAccountNotConnected", "products.list", { parameters, key: live })
    yield* refused("TestEnvironmentRequired", "eventTriggers.create", {
      parameters,
      key: live,
      body: { type: "payment.succeeded" }
    })
    yield* refused("ProviderObjectNotFound", "products.get", at({ id: "prod_unknown" }))
    const twice = { code: "SUMMER25", discount: { percent_off: 10 }, duration: "once" }
    yield* send("promotionCodes.create", sent(twice))
    yield* refused("ProviderRequestRefused", "promotionCodes.create", sent(twice))
    yield* refused("IdempotencyKeyReused", "products.create", {
      ...sent({ name: "Tea" }),
      headers: { "idempotency-key": exampleIdempotencyKey("products", "create") }
    })
    const wrong = { currency: "brl", unit_amount: "15.00", product_data: { name: "Tea" } }
    yield* refused("ValidationFailed", "prices.create", sent(wrong))
    yield* refused("UnsupportedMediaType", "products.create", { ...at(), raw: "name=Tea" })
    yield* refused("PayloadTooLarge", "products.create", sent({ name: "Tea".repeat(100_000) }))
    const endpoint = { name: "Shop", url: "https://shop.example/webhooks", events: ["payment.succeeded"] }
    const hook = (tag: string, body: unknown) => refused(tag, "endpoints.create", sent(body))
    yield* hook("DestinationRejected", { ...endpoint, url: "https://10.0.0.1/webhooks" })
    yield* hook("DestinationUnresolvable", { ...endpoint, url: "https://nowhere.invalid/webhooks" })
    yield* hook("IntegrationFilterInvalid", { ...endpoint, filters: { amountMin: 2, amountMax: 1 } })
    yield* hook("IntegrationFilterUnknown", { ...endpoint, filters: { tags: ["a"] } })
    yield* refused("ResourceNotFound", "endpoints.get", at({ id: organizationId }))
    yield* emulator.addFault({ fault: "html_502", account, path: "/v1/balance", times: 9 })
    yield* refused("ProviderUnavailable", "account.balance", at())
    yield* emulator.clearFaults
    yield* emulator.addFault({ fault: "rate_limit", account, path: "/v1/balance", times: 9 })
    yield* refused("ProviderRateLimited", "account.balance", at())
    yield* emulator.clearFaults
    recorder.refusals["MethodNotAllowed"] = (yield* request("PUT", "/health/live")).json
    // Five links to one mailbox in a quarter of an hour
    const asked = Array.from({ length: 5 }, () => send("signIn.requestLink", { body: { email: "dora@shop.example" } }))
    yield* Effect.all(asked)
    yield* refused("RateLimitExceeded", "signIn.requestLink", { body: { email: "dora@shop.example" } })
  })

/** Leaves: a member goes, and sessions end. */
const leave = (recorder: Recorder, { ana, organizationId, personId }: Shop) =>
  Effect.gen(function* () {
    const { call, refused } = recorder
    yield* call("members.remove", { ...ana, parameters: { personId } })
    const second = yield* signInAs(recorder, owner, 2)
    const sessions = Array.from(Object((yield* call("session.list", second)).json["data"]), Object)
    const other = sessions.find(({ current }) => current === false)
    yield* call("session.endOne", { ...second, parameters: { id: other.id } })
    yield* call("session.end", second)
    const third = yield* signInAs(recorder, owner, 3)
    yield* refused("OrganizationNotEmpty", "organizations.close", { ...third, parameters: { organizationId } })
    yield* call("session.endAll", third)
    // Somebody who has created one by mistake
    const dan = yield* signInAs(recorder, "dan@shop.example", 1)
    const mistake = yield* recorder.send("organizations.create", { ...dan, body: { name: "Bakrey" } })
    yield* call("organizations.close", { ...dan, parameters: { organizationId: textIn(mistake, "id") } })
  })

/** What a shop of real money sees of its last week: days pass in the tables alone. */
const overview = (recorder: Recorder, { live, organizationId }: Shop) =>
  Effect.gen(function* () {
    const { sql } = yield* TestService
    const created = yield* recorder.send("endpoints.create", {
      parameters: { organizationId },
      key: live,
      body: { name: "Shop", url: "https://93.184.215.14/webhooks", events: ["payment.succeeded"] }
    })
    const endpointId = textIn(created, "id")
    const day = sql`(now() AT TIME ZONE 'UTC')::date - 1`
    const of = sql`${organizationId}::uuid, 'production', ${day}, 0::smallint, (${day})::timestamp AT TIME ZONE 'UTC'`
    yield* sql`
      INSERT INTO payments.payment_counts (organization_id, environment, day, pass, slot, currency, kind, count, amount)
      VALUES (${of}, 'brl', 'succeeded', 12, 18000), (${of}, 'brl', 'failed', 1, 1500), (${of}, 'brl', 'refunded', 2, 700)`
    yield* sql`
      INSERT INTO payments.delivery_counts
        (organization_id, environment, day, pass, slot, endpoint_id, delivered, failed, queued)
      VALUES (${of}, ${endpointId}, 13, 1, 1)`
    yield* recorder.call("statistics.get", { parameters: { organizationId, days: 7 }, key: live })
  }).pipe(Effect.orDie)

export const runExamples = Effect.gen(function* () {
  const service = yield* TestService
  const recorder = makeRecorder(service)
  const consumer = yield* makeConsumer
  recorder.replaced.set(consumer.url, "https://shop.example/webhooks")
  recorder.replaced.set(service.emulator.url, exampleProviderUrl)
  const shop = yield* setUp(recorder)
  const sale = yield* sell(recorder, shop)
  yield* report(recorder, shop, sale, yield* deliver(recorder, sale, consumer))
  yield* overview(recorder, shop)
  yield* receive(recorder, shop)
  yield* refuse(recorder, shop, sale)
  yield* leave(recorder, shop)
  const { exchanges, refusals, replaced } = recorder
  return { exchanges, refusals, replaced } satisfies Recording
})
