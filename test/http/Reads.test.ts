import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedServiceWithMail, signInOwner } from "../harness/SignIn.ts"
import { type RequestOptions, TestService } from "../harness/TestService.ts"
import { makeThings } from "./Samples.ts"

onSharedServiceWithMail("a delivery and an event", (it) => {
  it.effect("are read, or refused, by who asks and for what", () =>
    Effect.gen(function* () {
      const service = yield* TestService
      const { makeKey, organization, stranger } = service
      const tenant = { organizationId: organization.id, key: organization.testKey }
      const { deliveryId, eventId } = yield* makeThings(service, tenant)
      const other = yield* makeKey(organization.id, ["products:read"])
      const unknownEvent = `svc_evt_${"0".repeat(64)}`
      const read = (path: string, options: RequestOptions) => service.request("GET", path, options)
      for (const [kind, id, unknown] of [
        ["deliveries", deliveryId, randomUUID()],
        ["events", eventId, unknownEvent]
      ] as const) {
        const pathOf = (name: string, of: string = organization.id) =>
          `/v2/organizations/${of}/integrations/${kind}/${name}`
        const key = organization.testKey
        const cases: ReadonlyArray<readonly [status: number, path: string, options: RequestOptions]> = [
          [200, pathOf(id), { key }],
          [200, pathOf(id, organization.id.toUpperCase()), { key }],
          [200, pathOf(id), { key, headers: { "service-workspace": "sandbox" } }],
          [200, pathOf(id), { key, headers: { cookie: "__Host-svc_session=worthless" } }],
          [404, pathOf(id), { key: organization.liveKey }],
          [404, pathOf(unknown), { key }],
          [404, pathOf(id, stranger.id), { key: stranger.testKey }],
          [403, pathOf(id, stranger.id), { key }],
          [403, pathOf(id), { key: other }],
          [401, pathOf(id), {}],
          [401, pathOf(id), { key: `pk_test_${"a".repeat(43)}` }],
          [401, pathOf(id), { key: "x".repeat(300) }],
          [422, pathOf(`${id}0`), { key }],
          [422, pathOf("%61"), { key }],
          [422, pathOf("%zz"), { key }],
          [422, pathOf(id, "nobody"), { key }],
          [422, pathOf(id), { key, headers: { "service-workspace": "production" } }]
        ]
        for (const [status, path, options] of cases) {
          const answer = yield* read(path, options)
          expect(answer.status, `${path} ${answer.text}`).toBe(status)
        }
        expect((yield* read(`${pathOf(id)}?expand=all`, { key })).status).toBe(422)
        const { headers } = yield* read(pathOf(id), { key })
        const again = { key, headers: { "if-none-match": headers.get("etag") ?? "" } }
        expect((yield* read(pathOf(id), again)).status).toBe(304)
      }
    })
  )

  it.effect("are for a signed-in person's own organization alone", () =>
    Effect.gen(function* () {
      const { organization } = yield* TestService
      const owner = yield* signInOwner
      const read = (path: string, options: RequestOptions) => owner.request("GET", path, options)
      const pathOf = (of: string) => `/v2/organizations/${of}/integrations/deliveries/${randomUUID()}`
      expect((yield* read(pathOf(owner.organizationId), {})).status).toBe(404)
      expect((yield* read(pathOf(organization.id), {})).status).toBe(403)
    })
  )
})
