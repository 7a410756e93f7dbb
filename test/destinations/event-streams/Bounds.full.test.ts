import { expect } from "@effect/vitest"
import { Duration, Effect, Exit, Scope } from "effect"
import { streamsPerOrganization } from "../../../src/destinations/event-streams/EventStreams.ts"
import { eventuallyIs, eventuallyTrue } from "../../harness/Eventually.ts"
import { onService, TestService, testSettings } from "../../harness/TestService.ts"
import { accepted, makeTenant, notification, notify } from "../../inbound/Notifications.ts"
import { expectFailure } from "../../surface/http/Refusals.ts"
import { startService } from "../../surface/http/StartedService.ts"
import { pathOf, readStream } from "./Reader.ts"

const settings = {
  roles: { api: true, worker: false },
  eventStreamLimit: streamsPerOrganization + 2,
  http: { ...testSettings.http, answerTimeout: Duration.seconds(1) }
}

onService(settings)("a process with streams of events", (it) => {
  it.scoped("cuts readers that don't keep up, and keeps one that does for as long as it likes", function* () {
    const { baseUrl, request, sql } = yield* TestService
    const tenant = yield* makeTenant
    const other = yield* makeTenant
    const quick = yield* readStream(baseUrl, pathOf(other), { "x-api-key": other.key })
    const spelled = pathOf(other).replace("stream", "strea%6d")
    const otherwise = yield* readStream(baseUrl, spelled, { "x-api-key": other.key })
    // More than fits between the two ends of a connection
    yield* sql`
        INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
        SELECT ${tenant.id}, 'sandbox', uuidv7(), 'svc_evt_' || n, 'payment.succeeded',
          json_build_object('id', 'svc_evt_' || n, 'type', 'payment.succeeded', 'data', repeat('x', 200000))::text
        FROM generate_series(1, 60) AS n`
    const slow = yield* Effect.all(
      Array.from({ length: streamsPerOrganization }, () =>
        readStream(baseUrl, pathOf(tenant, "?after=1"), { "x-api-key": tenant.key })
      )
    )
    yield* eventuallyTrue("they have begun", () => slow.every(({ status }) => status() === 200))
    for (const reader of slow) reader.pause()
    const further = () => request("GET", pathOf(tenant, "?follow=false"), { key: tenant.key })
    // They would stay for ever
    yield* eventuallyIs("their places are free", further(), ({ status }) => status === 200)
    expect([quick.ended(), otherwise.ended()]).toEqual([false, false])
    yield* accepted(notify(notification(other.accountId)))
    yield* eventuallyTrue("an event", () => quick.events().length === 1)
  })

  it.scoped("has a bounded number of them, whoever they belong to", function* () {
    const { baseUrl, request } = yield* TestService
    const tenants = yield* Effect.all(Array.from({ length: settings.eventStreamLimit }, () => makeTenant))
    const readers = yield* Effect.forEach(tenants, (tenant) =>
      readStream(baseUrl, pathOf(tenant), { "x-api-key": tenant.key })
    )
    yield* eventuallyTrue("all are ready", () => readers.every(({ messages }) => messages.length === 1))
    const tenant = yield* makeTenant
    const refused = yield* request("GET", pathOf(tenant), { key: tenant.key })
    expectFailure(refused, { status: 503, code: "service_unavailable" })
  })

  it.effect("ends them when it stops, and does not wait for its timeout", function* () {
    const { options } = yield* TestService
    const tenant = yield* makeTenant
    const scope = yield* Scope.make()
    const { baseUrl } = yield* startService({
      ...options,
      settings: { shutdownTimeout: Duration.minutes(1) }
    }).pipe(Scope.extend(scope))
    yield* Effect.scoped(
      Effect.gen(function* () {
        const reader = yield* readStream(baseUrl, pathOf(tenant), { "x-api-key": tenant.key })
        yield* eventuallyTrue("it is ready", () => reader.messages.length === 1)
        yield* Scope.close(scope, Exit.void).pipe(
          Effect.timeoutFail({ duration: "20 seconds", onTimeout: () => "hangs" })
        )
        yield* eventuallyTrue("its end", reader.ended)
      })
    )
  })
})
