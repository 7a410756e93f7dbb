import { Effect, Schema } from "effect"
import { authenticate } from "../Authentication.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import type { Notifier } from "../events/Notifier.ts"
import { type HttpReply, type HttpRequest, jsonReply, makeRouter } from "../Http.ts"
import { accountInvalid, type ProviderError, refuse } from "../ProviderError.ts"
import type { Service } from "../Service.ts"
import { runTrigger } from "../triggers/Run.ts"
import { triggers } from "../triggers/TriggerList.ts"
import { apiVersions } from "../Versions.ts"
import {
  AccountChange,
  changeAccount,
  ensureAccount,
  isTarget,
  orderRenewal,
  setUpsell,
  UpsellRequest
} from "./ControlActions.ts"
import { decodeInput, maybe } from "./ControlInput.ts"
import { faultKinds } from "./Faults.ts"

const webhookBody = Schema.Struct({
  url: Schema.String.pipe(Schema.filter(isTarget)),
  entry: maybe(Schema.Literal("snapshot", "thin")),
  api_version: maybe(Schema.Literal(...apiVersions))
})
const accountBody = Schema.parseJson(Schema.Struct({ id: maybe(Schema.String) }))
const faultBody = Schema.Struct({
  fault: Schema.Literal(...faultKinds),
  times: maybe(Schema.Int.pipe(Schema.between(1, 1_000))),
  after: maybe(Schema.Int.pipe(Schema.between(0, 1_000))),
  account: maybe(Schema.String),
  method: maybe(Schema.String),
  path: maybe(Schema.String)
})
const triggerBody = Schema.Record({ key: Schema.String, value: Schema.Unknown })
const renewalBody = Schema.Struct({
  account: Schema.String,
  id: Schema.String,
  outcome: Schema.Literal("paid", "failed")
})

/** Events with their notification states, oldest first, then thin ones; the platform's without an account. */
const listEvents = (service: Service, notifier: Notifier, query: string) => {
  const account = new URLSearchParams(query).get("account") ?? service.platformId
  return service.store.transact((transaction) => {
    if (account !== service.platformId && transaction.in(service.platformId).get("account", account) === undefined) {
      return accountInvalid(account)
    }
    const objects = transaction.in(account)
    const data = [...objects.all("event"), ...objects.all("thin_event")].map((event) => {
      const delivery = objects.get("delivery", event.id)
      if (delivery === undefined) return { event, delivery: null }
      const { attempts, lastError, lastStatus, state } = delivery
      return {
        event,
        delivery: {
          state,
          attempts: notifier.attemptsOf(event.id) ?? attempts,
          last_status: lastStatus,
          last_error: lastError
        }
      }
    })
    return Effect.succeed({ object: "list", data })
  })
}

const unknownUrl = ({ method, path }: HttpRequest): ProviderError =>
  refuse({ status: 404, message: `Unrecognized control URL (${method}: ${path}).` })

type Answer = Effect.Effect<object, ProviderError | EmulatorError>

type Operation = (request: HttpRequest, id: string) => Answer

const withBody =
  <A, I>(schema: Schema.Schema<A, I>, run: (input: A, id: string) => Answer): Operation =>
  ({ body }, id) =>
    Effect.flatMap(decodeInput(Schema.parseJson(schema), body), (input) => run(input, id))

/**
 * The HTTP interface that controls the emulator from another process, with the platform's key and JSON bodies:
 *
 * - `POST /_emulator/webhook {url, entry?: "snapshot" | "thin", api_version?}`: sets the target of notifications and
 *   the version of snapshots
 * - `POST /_emulator/accounts {id?}`: returns a connected account, created if missing
 * - `POST /_emulator/accounts/:id {revoke: true} | {restore: true} | {controlled}`: sets whether the platform may act
 *   for the account, and whether it controls the account (and so sees its bank accounts)
 * - `POST /_emulator/renewals {account, id, outcome}`: begins a subscription's next period, `paid` or `failed`, or ends
 *   a subscription that was canceled at the end of its period
 * - `POST /_emulator/upsells {account, price, upsell}`: offers payers an upsell for a recurring price, as an owner does
 *   at the provider; null withdraws it
 * - `POST /_emulator/trigger {type, account?, api_version?, ...}`: triggers a provider event; an unknown type is
 *   refused (422) with the known ones; `GET /_emulator/triggers` lists them with their options
 * - `POST /_emulator/faults {fault, times?, after?, account?, method?, path?}`: makes calls fail; `GET` lists the
 *   pending faults, `DELETE` removes them
 * - `GET /_emulator/events?account=`: lists events with their notification states
 */
export const makeControl = (service: Service, notifier: Notifier) => {
  const { faults } = service
  const find = makeRouter<Operation>({
    "POST /_emulator/webhook": withBody(webhookBody, ({ api_version, entry = "snapshot", url }) => {
      const target = { url, ...(api_version === undefined ? {} : { apiVersion: api_version }) }
      return Effect.as(notifier.setTarget(entry, target), { url })
    }),
    "POST /_emulator/accounts": ({ body }) =>
      decodeInput(accountBody, body === "" ? "{}" : body).pipe(
        Effect.flatMap(({ id }) => ensureAccount(service, id)),
        Effect.map((id) => ({ id }))
      ),
    "POST /_emulator/accounts/:id": withBody(AccountChange, (change, id) => changeAccount(service, id, change)),
    "POST /_emulator/renewals": withBody(renewalBody, (order) => orderRenewal(service, order)),
    "POST /_emulator/upsells": withBody(UpsellRequest, (request) => setUpsell(service, request)),
    "POST /_emulator/trigger": withBody(triggerBody, (request) => runTrigger(service, request)),
    "GET /_emulator/triggers": () => Effect.succeed({ data: triggers }),
    "POST /_emulator/faults": withBody(faultBody, (fault) =>
      Effect.sync(() => {
        faults.add(fault)
        return { data: faults.pending() }
      })
    ),
    "GET /_emulator/faults": () => Effect.sync(() => ({ data: faults.pending() })),
    "DELETE /_emulator/faults": () =>
      Effect.sync(() => {
        faults.clear()
        return { data: faults.pending() }
      }),
    "GET /_emulator/events": ({ query }) => listEvents(service, notifier, query)
  })

  const answer = (request: HttpRequest): Answer => {
    const found = find(`${request.method} ${request.path}`)
    return found?.value(request, found.ids[0] ?? "") ?? unknownUrl(request)
  }

  return (request: HttpRequest): Effect.Effect<HttpReply, ProviderError | EmulatorError> =>
    authenticate(request, service.secretKey).pipe(
      Effect.zipRight(Effect.suspend(() => answer(request))),
      Effect.map((value) => jsonReply(200, JSON.stringify(value)))
    )
}
