import { Effect, ParseResult, Schema } from "effect"
import { authenticate } from "./Authentication.ts"
import type { EmulatorError } from "./EmulatorError.ts"
import { type HttpReply, type HttpRequest, jsonReply } from "./Http.ts"
import { isAccountId, newId } from "./Ids.ts"
import type { Notifier } from "./Notifier.ts"
import { accountInvalid, type ProviderError, refuse } from "./ProviderError.ts"
import { makeAccount } from "./resources/Accounts.ts"
import { type Service, unixSeconds } from "./Service.ts"

/**
 * The account under this id, made if it is missing; without an id, always a new one.
 *
 * An id that is none (`acct_` and 16 letters or digits) fails with 400.
 */
export const ensureAccount = (service: Service, id?: string): Effect.Effect<string, ProviderError | EmulatorError> => {
  if (id !== undefined && !isAccountId(id)) {
    return Effect.fail(refuse({ param: "id", message: "An account id is `acct_` and 16 letters or digits." }))
  }
  return Effect.flatMap(unixSeconds, (now) =>
    service.store.transact((transaction) =>
      Effect.sync(() => {
        const accounts = transaction.in(service.platformId)
        const account = id ?? newId("acct_")
        if (accounts.get("account", account) === undefined) {
          accounts.put("account", account, makeAccount(account, now))
        }
        return account
      })
    )
  )
}

/** Whether notifications can be sent there: an absolute http or https URL. */
export const isTarget = (url: string): boolean => URL.canParse(url) && /^https?:\/\//i.test(url)

const webhookBody = Schema.parseJson(Schema.Struct({ url: Schema.String.pipe(Schema.filter(isTarget)) }))
const accountBody = Schema.parseJson(Schema.Struct({ id: Schema.optionalWith(Schema.String, { exact: true }) }))

const decodeBody = <A, I>(schema: Schema.Schema<A, I>, body: string): Effect.Effect<A, ProviderError> =>
  ParseResult.decodeUnknown(schema, { onExcessProperty: "error" })(body).pipe(
    Effect.mapError((issue) => refuse({ message: ParseResult.TreeFormatter.formatIssueSync(issue) }))
  )

/** The events of an account with the state of their notifications, oldest first; of a platform's event there is none. */
const listEvents = (service: Service, notifier: Notifier, query: string) => {
  const account = new URLSearchParams(query).get("account") ?? service.platformId
  return service.store.transact((transaction) => {
    if (account !== service.platformId && transaction.in(service.platformId).get("account", account) === undefined) {
      return Effect.fail(accountInvalid(account))
    }
    const objects = transaction.in(account)
    const data = objects.all("event").map((event) => {
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

const answer = (value: object): HttpReply => jsonReply(200, JSON.stringify(value))

/**
 * What drives the emulator from another process, with the platform's key and JSON bodies:
 * `POST /_emulator/webhook {url}`, `POST /_emulator/accounts {id?}`, `GET /_emulator/events?account=`.
 */
export const makeControl =
  (service: Service, notifier: Notifier) =>
  (request: HttpRequest): Effect.Effect<HttpReply, ProviderError | EmulatorError> =>
    Effect.gen(function* () {
      yield* authenticate(request, service.secretKey)
      switch (`${request.method} ${request.path}`) {
        case "POST /_emulator/webhook": {
          const { url } = yield* decodeBody(webhookBody, request.body)
          yield* notifier.setTarget(url)
          return answer({ url })
        }
        case "POST /_emulator/accounts": {
          const { id } = yield* decodeBody(accountBody, request.body === "" ? "{}" : request.body)
          return answer({ id: yield* ensureAccount(service, id) })
        }
        case "GET /_emulator/events":
          return answer(yield* listEvents(service, notifier, request.query))
        default:
          return yield* refuse({
            status: 404,
            message: `Unrecognized control URL (${request.method}: ${request.path}).`
          })
      }
    })
