import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Webhook } from "standardwebhooks"
import { verifyWebhook } from "../../../src/webhooks/index.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { cuttingProxy } from "../../harness/CuttingProxy.ts"
import { eventually, eventuallyTrue } from "../../harness/Eventually.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { accepted, makeTenant, notification, notify, type Tenant, unlink } from "../../inbound/Notifications.ts"
import { cliHere, startCli } from "./CliProcess.ts"

const pay = (tenant: Tenant, id: string) => accepted(notify(notification(tenant.accountId, { id })))

const variable = "CONNECTED_PAYMENTS_API_KEY"

onSharedService("connected-payments listen", (it) => {
  it.scoped(
    "posts events to a program on this machine as a delivery comes, over a cut line without losing any, until Ctrl-C",
    function* () {
      const { baseUrl } = yield* TestService
      const tenant = yield* makeTenant
      const consumer = yield* makeConsumer
      const line = yield* cuttingProxy(baseUrl)
      const listening = yield* startCli(
        { [variable]: tenant.key },
        "listen",
        "--forward-to",
        consumer.url,
        "--url",
        line.url
      )
      const said = (words: string | RegExp) => () => new RegExp(words).test(listening.printed().stderr)
      yield* eventuallyTrue("it is connected", said("Connected"), 120_000)
      yield* pay(tenant, "evt_listen_1")
      yield* eventuallyTrue("the first event", () => consumer.received.length === 1)

      line.cut()
      yield* eventuallyTrue("it has noticed", said("Interrupted"))
      consumer.answer(400, { "Service-Refused": "signature" })
      yield* Effect.all([pay(tenant, "evt_listen_2"), pay(tenant, "evt_listen_3")])
      line.mend()
      yield* eventuallyTrue("the others", () => consumer.received.length === 3, 120_000)
      yield* eventuallyTrue("the answers", () => listening.printed().stdout.split("\n").length === 4)

      const { code, stderr, stdout } = yield* listening.interrupt
      expect(code).toBe(130)
      expect(stderr).toContain("Stopped.")
      expect(stderr).not.toMatch(/\n\s+at |bug/)
      expect(stderr).not.toContain(tenant.key)
      expect(stderr).toContain(tenant.id)
      expect(stdout.trim().split("\n")).toEqual([
        expect.stringMatching(/^[\d:]{8} {2}payment\.succeeded {2}svc_evt_[0-9a-f]{64} {2}-> 204 \(\d+ ms\)$/),
        // Why, in the words of the history: most likely the receiver has another secret
        expect.stringMatching(/ -> 400 consumer_refused_signature \(/),
        expect.stringMatching(/ -> 400 consumer_refused_signature \(/)
      ])
      // Each once, signed with the secrets that it prints, with the headers of a delivery
      const [, secret = ""] = /Signing secret\s+(whsec_[\w-]{43})/.exec(stderr) ?? []
      const [, standardSecret = ""] = /Standard Webhooks\s+(whsec_\S+)/.exec(stderr) ?? []
      const events = consumer.received.map(({ body, headers }) => {
        expect(headers).toMatchObject({
          "content-type": "application/json",
          "user-agent": expect.stringMatching(/^connected-payments\//),
          "service-delivery-id": expect.stringMatching(/^[0-9a-f-]{36}$/)
        })
        const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
        const event = verifyWebhook({
          body,
          header: named["service-signature"],
          secret,
          organizationId: tenant.id,
          livemode: false
        })
        expect(new Webhook(standardSecret).verify(body, named)).toEqual(event)
        return event.source.event_id
      })
      expect(events.toSorted()).toEqual(["evt_listen_1", "evt_listen_2", "evt_listen_3"])
    }
  )

  it.scoped("takes the types and the secret that it is given, and shows each answer as JSON", function* () {
    const { baseUrl } = yield* TestService
    const tenant = yield* makeTenant
    const secret = `whsec_${"s".repeat(43)}`
    const gone = yield* Effect.scoped(makeConsumer)
    const listening = yield* startCli(
      { [variable]: tenant.key, MY_SECRET: secret },
      ...["listen", "--forward-to", gone.url, "--events", "payment.failed,account.updated"],
      ...["--secret-env", "MY_SECRET", "--url", baseUrl, "--json"]
    )
    yield* eventuallyTrue("it is connected", () => listening.printed().stderr.includes("Connected"), 120_000)
    yield* pay(tenant, "evt_listen_other")
    yield* accepted(
      notify(
        notification(tenant.accountId, {
          type: "payment_intent.payment_failed",
          object: { id: "pi_1", amount: 5, currency: "brl" }
        })
      )
    )
    yield* eventuallyTrue("the answer", () => listening.printed().stdout.includes("\n"))
    const { stderr, stdout } = yield* listening.interrupt
    expect(JSON.parse(stdout)).toMatchObject({
      type: "payment.failed",
      status: null,
      answer: "nothing listens there"
    })
    expect(stderr).toContain(secret)
  })

  it.scoped("refuses live keys before it sends them anywhere, unknown keys, and what is no URL", function* () {
    const { baseUrl, makeKey, organization } = yield* TestService
    const readOnly = yield* makeKey(organization.id, ["payments:read"])
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>, number, RegExp]> = [
      [organization.liveKey, ["--forward-to", "http://localhost:1", "--url", "http://127.0.0.1:1"], 1, /live key/],
      [`pk_test_${"x".repeat(43)}`, ["--forward-to", "http://localhost:1", "--url", baseUrl], 1, /key is not valid/],
      [readOnly, ["--forward-to", "http://localhost:1", "--url", baseUrl], 1, /webhook-endpoints:read/],
      [organization.testKey, ["--forward-to", "ftp://localhost", "--url", baseUrl], 2, /http or https URL/],
      [organization.testKey, ["--forward-to", "http://u:pass-word@localhost:1", "--url", baseUrl], 2, /user name/],
      [organization.testKey, ["--forward-to", "http://u@localhost:1", "--url", baseUrl], 2, /user name/],
      [
        organization.testKey,
        ["--forward-to", "http://localhost:1", "--url", baseUrl.replace("//", "//u:pass-word@")],
        2,
        /user name/
      ],
      [`"${organization.testKey}"`, ["--forward-to", "http://localhost:1", "--url", baseUrl], 1, /quotes in it/],
      [`pk_test_a\nb`, ["--forward-to", "http://localhost:1", "--url", baseUrl], 1, /line break/],
      [organization.testKey, ["--forward-to", "http://localhost:1", "--url", "http://127.0.0.1:1"], 1, /reached/],
      [
        organization.testKey,
        ["--forward-to", "http://localhost:1", "--events", "payment.invented", "--url", baseUrl],
        2,
        /event types/
      ]
    ]
    for (const [key, args, code, words] of cases) {
      const ended = yield* cliHere({ [variable]: key }, "listen", ...args)
      expect(ended.code, ended.stderr).toBe(code)
      expect(ended.stderr).toMatch(words)
      expect(ended.stderr).not.toContain(key)
      expect(ended.stderr).not.toContain("pass-word")
    }
    for (const environment of [{}, { [variable]: "" }]) {
      const unset = yield* cliHere(environment, "listen", "--forward-to", "http://localhost:1", "--url", baseUrl)
      expect(unset.stderr).toContain(`environment variable ${variable}`)
    }
    for (const signingSecret of [`whsec_${"A".repeat(43)}\n`, `"whsec_${"A".repeat(43)}"`]) {
      const environment = { [variable]: organization.testKey, SIGNING_SECRET: signingSecret }
      const to = ["--forward-to", "http://localhost:1", "--secret-env", "SIGNING_SECRET", "--url", baseUrl]
      const ended = yield* cliHere(environment, "listen", ...to)
      expect(ended.code, ended.stderr).toBe(1)
      expect(ended.stderr).toContain("The signing secret in SIGNING_SECRET has")
      expect(ended.stderr).not.toContain("AAAA")
    }
    const elsewhere = ["--forward-to", "http://localhost:1", "--url", `${baseUrl}/docs`]
    const astray = yield* cliHere({ [variable]: organization.testKey }, "listen", ...elsewhere)
    expect(astray.stderr).toContain("--url has to be the service's PUBLIC_URL")
  })
})

onSharedService("connected-payments trigger", (it) => {
  it.scoped("has the local provider do what leads to the event, which follows like any other", function* () {
    const { baseUrl, sql } = yield* TestService
    const tenant = yield* makeTenant
    const ended = yield* cliHere({ [variable]: tenant.key }, "trigger", "payment.refunded", "--url", baseUrl, "--json")
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.json).toEqual({ type: "payment.refunded", origin: "provider", eventId: null })
    const types = yield* eventually(
      "both events",
      Effect.map(
        sql<{ type: string }>`SELECT type FROM payments.events WHERE organization_id = ${tenant.id}`,
        (rows) => {
          const found = rows.map(({ type }) => type)
          return found.length === 2 ? Option.some(found) : Option.none()
        }
      )
    )
    expect(types.toSorted()).toEqual(["payment.refunded", "payment.succeeded"])
  })

  it.scoped("makes a synthetic event of what the local provider can't trigger, and refuses the rest", function* () {
    const { baseUrl, organization, request, sql } = yield* TestService
    const tenant = yield* makeTenant
    const run = (key: string, type: string) => cliHere({ [variable]: key }, "trigger", type, "--url", baseUrl)
    const ended = yield* run(tenant.key, "milestone.first_payment")
    expect(ended.code, ended.stderr).toBe(0)
    const [, eventId] = /(svc_test_evt_\S+)/.exec(ended.stdout) ?? []
    const [event] = yield* sql<{ payload: string }>`
        SELECT payload FROM payments.events WHERE organization_id = ${tenant.id} AND public_id = ${eventId ?? ""}`
    expect(JSON.parse(event?.payload ?? "")).toMatchObject({ type: "milestone.first_payment", test: true })
    const audit = yield* request("GET", `/v2/organizations/${tenant.id}/integrations/audit-log`, { key: tenant.key })
    expect(audit.text).toContain('"event.triggered"')

    expect((yield* run(tenant.key, "payment_intent.succeeded")).code).toBe(2)
    const live = yield* run(organization.liveKey, "payment.succeeded")
    expect([live.code, live.stderr]).toEqual([1, expect.stringContaining("live key")])
    const refused = yield* request("POST", `/v2/organizations/${organization.id}/integrations/event-triggers`, {
      key: organization.liveKey,
      headers: { "idempotency-key": crypto.randomUUID() },
      body: { type: "payment.succeeded" }
    })
    expect([refused.status, refused.json["code"]]).toEqual([409, "test_environment_required"])
    yield* unlink(tenant)
    const unlinked = yield* run(tenant.key, "payment.succeeded")
    expect([unlinked.code, unlinked.stderr]).toEqual([1, expect.stringContaining("no connected provider account")])
  })
})
