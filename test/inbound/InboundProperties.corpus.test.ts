import { expect } from "@effect/vitest"
import { Cause, Effect, Exit, FastCheck as fc, Logger, LogLevel, Option, Predicate } from "effect"
import { Inbound } from "../../src/inbound/Inbound.ts"
import { ServiceUnavailable, SignatureInvalid } from "../../src/platform/errors/Errors.ts"
import { checkoutSession, failedPaymentIntent, paymentIntent } from "../events/ProviderEvents.ts"
import { casesOf } from "../harness/Corpus.ts"
import { inDatabase, onService, serviceOf } from "../harness/TestService.ts"
import { makeSubscriber, makeTenant, newEventId, notification, signature, type Tenant } from "./Notifications.ts"

/** A signed but malformed notification is an error in the log, thousands of times here. */
const quietly = Logger.withMinimumLogLevel(LogLevel.None)

/** Provider event ids of what is not signed start like this: no receipt may ever. */
const forgedPrefix = "evt_forged"

const eventParts = (account: string) => ({
  id: fc.oneof({ weight: 6, arbitrary: fc.uuid() }, fc.string(), fc.constant(null)),
  type: fc.oneof(
    fc.constantFrom("payment_intent.succeeded", "payment_intent.payment_failed", "checkout.session.completed"),
    fc.constantFrom("charge.refunded", "account.updated", "toString"),
    fc.string()
  ),
  created: fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 0, max: 253_402_300_799 }) }, fc.double(), fc.string()),
  livemode: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.jsonValue() }),
  account: fc.oneof(
    { weight: 8, arbitrary: fc.constant<unknown>(account) },
    { weight: 2, arbitrary: fc.oneof(fc.string(), fc.constant(null), fc.integer()) }
  ),
  data: fc
    .oneof(
      { weight: 6, arbitrary: fc.constantFrom(paymentIntent, failedPaymentIntent, checkoutSession) },
      { weight: 2, arbitrary: fc.record({ id: fc.fullUnicodeString(), amount: fc.jsonValue() }) },
      { weight: 2, arbitrary: fc.jsonValue() }
    )
    .map((object) => ({ object }))
})

/** Something like an event of the provider's: mostly with all its parts, at times with some. */
const arbitraryEvent = (account: string) => {
  const parts = eventParts(account)
  return fc.oneof(
    { weight: 3, arbitrary: fc.record(parts) },
    { weight: 1, arbitrary: fc.record(parts, { requiredKeys: [] }) }
  )
}

const headers: ReadonlyArray<(body: string, noise: string) => string | undefined> = [
  () => undefined,
  (_, noise) => noise,
  (body, noise) => signature(body + (noise === "" ? " " : noise)),
  (body) => signature(body, { secret: "whsec_ofsomeoneelse" }),
  // What is ahead comes nearer while a batch is judged: far enough that no slow machine lets it become genuine
  (body, noise) => signature(body, { secondsFromNow: noise.length % 2 === 0 ? -301 : 3600 }),
  (body) => `${signature(body)},t=0`,
  (body, noise) => signature(body).replace(/v1=./, (start) => `${start}${noise.replace(/[0-9a-f]/g, "") || "g"}`),
  (body) => signature(body).replace(",", ";"),
  (body) => signature(body).replace("v1=", "v0=")
]

/** Says what it was instead; only then, since that reads the stack of every cause. */
const expectSignatureInvalid = (cause: Cause.Cause<unknown>): void => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  if (!(failure instanceof SignatureInvalid)) expect.fail(Cause.pretty(cause))
}

/** That can only be a wrong setting: the provider has to send it again. */
const isLiveUnderSandboxSecret = (body: string, cause: Cause.Cause<unknown>): boolean => {
  const parsed = Option.liftThrowable(JSON.parse)(body)
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  return (
    failure instanceof ServiceUnavailable &&
    Option.exists(parsed, (event: unknown) => Predicate.hasProperty(event, "livemode") && event.livemode === true)
  )
}

interface Arrival {
  readonly body: string
  readonly header: string | undefined
  readonly isSigned: boolean
}

const forgery = (account: string): fc.Arbitrary<Arrival> =>
  fc
    .record({
      noise: fc.string(),
      header: fc.constantFrom(...headers),
      body: fc.oneof(
        fc.fullUnicodeString(),
        fc.json(),
        fc.uuid().map((id) => notification(account, { id: `${forgedPrefix}_${id}` }))
      )
    })
    .map(({ body, header, noise }) => ({ body, header: header(body, noise), isSigned: false }))

/** Signs the bytes that are sent: a lone surrogate in the text becomes another character in them. */
const signedAs = (text: string): Arrival => {
  const body = Buffer.from(text).toString()
  return { body, header: signature(body), isSigned: true }
}

const signed = (account: string): fc.Arbitrary<Arrival> =>
  fc
    .oneof(
      { weight: 1, arbitrary: fc.fullUnicodeString() },
      { weight: 1, arbitrary: fc.json() },
      { weight: 6, arbitrary: arbitraryEvent(account).map((event) => JSON.stringify(event)) }
    )
    .map(signedAs)

const arrivals = ({ accountId }: Tenant) =>
  fc.array(fc.oneof({ weight: 3, arbitrary: forgery(accountId) }, { weight: 1, arbitrary: signed(accountId) }), {
    minLength: 100,
    maxLength: 100
  })

onService({ roles: { api: true, worker: false } })("whatever arrives at the provider's entry", (it) => {
  it.effect("is stored or refused: no defect, and no receipt of what the provider did not sign", function* () {
    const { receive } = yield* serviceOf(Inbound)
    const { tenant } = yield* makeSubscriber(["payment.succeeded", "payment.failed", "checkout.completed"])
    const counts = { forged: 0, stored: 0, unparseable: 0 }

    const classify = Effect.fnUntraced(function* ({ body, header, isSigned }: Arrival) {
      const exit = yield* Effect.exit(receive(Buffer.from(body), header))
      if (Exit.isSuccess(exit)) {
        expect(isSigned, header).toBe(true)
        counts.stored += 1
        return
      }
      if (isSigned && isLiveUnderSandboxSecret(body, exit.cause)) return
      expectSignatureInvalid(exit.cause)
      counts[isSigned ? "unparseable" : "forged"] += 1
    })

    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(arrivals(tenant), (batch) =>
          Effect.runPromise(quietly(Effect.forEach(batch, classify, { concurrency: 8, discard: true })))
        ),
        { numRuns: 10, endOnFailure: true }
      )
    )

    expect(
      yield* inDatabase`SELECT 1 FROM payments.receipts WHERE provider_event_id LIKE ${`${forgedPrefix}%`}`
    ).toEqual([])
    // The generator reaches every kind: else the property says less than it seems to
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(20)
    const outcomes = yield* inDatabase<{ outcome: string }>`SELECT DISTINCT outcome FROM payments.receipts`
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(
      expect.arrayContaining(["delivered", "ignored", "unlinked", "malformed"])
    )
  })

  it.effect("is stored or refused at the thin entry too, and never becomes a payment there", function* () {
    const { receiveThin } = yield* serviceOf(Inbound)
    const { tenant } = yield* makeSubscriber(["payment.succeeded", "payment.failed", "checkout.completed"])
    const thin = fc
      .record(
        {
          id: fc.oneof({ weight: 6, arbitrary: fc.uuid() }, fc.string(), fc.constant(null)),
          object: fc.oneof({ weight: 9, arbitrary: fc.constant("v2.core.event") }, fc.string()),
          type: fc.oneof(fc.constantFrom("v1.payment_intent.succeeded", "payment_intent.succeeded"), fc.string()),
          created: fc.oneof(fc.date({ noInvalidDate: true }).map(String), fc.nat(), fc.jsonValue()),
          livemode: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.jsonValue()),
          context: fc.oneof(fc.constant(tenant.accountId), fc.fullUnicodeString(), fc.jsonValue()),
          related_object: fc.oneof(
            fc.record({ id: fc.constant(tenant.accountId), type: fc.constant("account") }),
            fc.jsonValue()
          ),
          data: fc.constant({ object: paymentIntent })
        },
        { requiredKeys: ["id", "object", "type", "created", "livemode"] }
      )
      .map((event) => signedAs(JSON.stringify(event)))
    const parts = { object: "v2.core.event", type: "v1.payment_intent.succeeded", created: 1_770_000_000 }
    const ofNobody = signedAs(JSON.stringify({ ...parts, id: "evt_no", context: "acct_no", livemode: false }))
    const outcomes = new Set<string>()
    const classify = Effect.fnUntraced(function* ({ body, header, isSigned }: Arrival) {
      const exit = yield* Effect.exit(receiveThin(Buffer.from(body), header))
      if (Exit.isSuccess(exit)) {
        expect(isSigned, header).toBe(true)
        outcomes.add(exit.value)
      } else if (!isSigned || !isLiveUnderSandboxSecret(body, exit.cause)) expectSignatureInvalid(exit.cause)
    })
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.oneof(thin, forgery(tenant.accountId)), (arrival) =>
          Effect.runPromise(quietly(classify(arrival)))
        ),
        { numRuns: casesOf(500, 100), endOnFailure: true, examples: [[ofNobody]] }
      )
    )
    expect([...outcomes]).toEqual(expect.arrayContaining(["ignored", "unlinked"]))
    expect(yield* inDatabase`SELECT 1 FROM payments.events WHERE organization_id = ${tenant.id}`).toEqual([])
  })

  it.effect("every byte of a notification is under its signature", function* () {
    const { receive } = yield* serviceOf(Inbound)
    const tenant = yield* makeTenant
    const id = newEventId()
    const body = notification(tenant.accountId, { id })
    const header = signature(body)
    const bytes = Buffer.from(body)
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (position, difference) => {
          const changed = Buffer.from(bytes)
          changed.writeUInt8(changed.readUInt8(position) ^ difference, position)
          const exit = await Effect.runPromiseExit(receive(changed, header))
          expect(Exit.isFailure(exit) && Option.getOrUndefined(Cause.failureOption(exit.cause))).toBeInstanceOf(
            SignatureInvalid
          )
        }),
        { numRuns: casesOf(250) }
      )
    )
    expect(yield* inDatabase`SELECT 1 FROM payments.receipts WHERE provider_event_id = ${id}`).toEqual([])
    expect(yield* receive(bytes, header)).toBe("no_subscriber")
  })
})
