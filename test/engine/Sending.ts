import { Effect, Option } from "effect"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually } from "../harness/Eventually.ts"
import { sendRequest } from "../harness/TestService.ts"
import { makeSubscriber, notification, notify, type Tenant } from "../inbound/Notifications.ts"

type Json = Record<string, unknown>

/** The deliveries of an endpoint, each with its attempts, as the API shows them. */
export const deliveriesOf = Effect.fnUntraced(function* (tenant: Tenant, endpointId: string) {
  const base = `/v2/organizations/${tenant.id}/integrations`
  const list = yield* sendRequest("GET", `${base}/endpoints/${endpointId}/deliveries`, { key: tenant.key })
  // The database may be away for a moment, in tests of that: then nothing is seen yet
  if (list.status === 503) return []
  const data = list.json["data"] as ReadonlyArray<Json> // the API's JSON: the assertions on it are the check
  return yield* Effect.forEach(data, ({ id }) =>
    Effect.map(sendRequest("GET", `${base}/deliveries/${String(id)}`, { key: tenant.key }), ({ json }) => json)
  )
})

/** Waits until the endpoint's only delivery has seen so many attempts that all are recorded. */
export const attempted = (tenant: Tenant, endpointId: string, attempts = 1) =>
  eventually(
    `${attempts} recorded attempts`,
    Effect.map(deliveriesOf(tenant, endpointId), ([delivery]) =>
      Option.fromNullable(delivery).pipe(
        Option.filter(({ attempts: known }) => Array.isArray(known) && known.length === attempts)
      )
    )
  )

export const attemptsIn = (delivery: Json) => delivery["attempts"] as ReadonlyArray<Json> // see deliveriesOf

export const answering = (status: number, headers: Readonly<Record<string, string>> = {}) =>
  Effect.tap(makeConsumer, ({ answer }) => Effect.sync(() => answer(status, headers)))

/** One endpoint at this destination, and one event on its way to it. */
export const send = Effect.fnUntraced(function* (url: string) {
  const { tenant, ...endpoint } = yield* makeSubscriber(["payment.succeeded"], url)
  yield* notify(notification(tenant.accountId))
  return { tenant, endpoint }
})
