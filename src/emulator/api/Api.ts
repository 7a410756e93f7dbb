import { Effect } from "effect"
import { authenticate, connectedAccount, isAnotherPlatforms } from "../Authentication.ts"
import { suffer } from "../control/Faults.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import { type HttpReply, type HttpRequest, jsonReply, makeRouter } from "../Http.ts"
import { anotherPlatformAccountId } from "../Ids.ts"
import {
  accountInvalid,
  type Check,
  errorBody,
  firstOf,
  internalError,
  type ProviderError,
  refuse
} from "../ProviderError.ts"
import { makeAccount } from "../resources/connect/Accounts.ts"
import { routes } from "../resources/Resources.ts"
import { type Service, unixSeconds } from "../Service.ts"
import { type Answer, makeIdempotency, type RunOnce } from "../store/Idempotency.ts"
import type { Transaction } from "../store/Store.ts"
import { apiVersion } from "../Versions.ts"
import { type FormInput, parseForm } from "./Form.ts"
import { type Prepared, requestContext } from "./Route.ts"

const findRoute = makeRouter(Object.fromEntries(routes.map((route) => [`${route.method} ${route.path}`, route])))

const routeOf = ({ method, path }: HttpRequest) => {
  const found = findRoute(`${method} ${path}`)
  return found === undefined || found.ids.includes("")
    ? refuse({ status: 404, message: `Unrecognized request URL (${method}: ${path}).` })
    : Effect.succeed(found)
}

const accountOf = (service: Service, request: HttpRequest): Effect.Effect<string, ProviderError | EmulatorError> => {
  const account = request.header("stripe-account")
  if (account === undefined) return Effect.succeed(service.platformId)
  return service.store.transact((transaction) =>
    connectedAccount(transaction.in(service.platformId), account) === undefined
      ? accountInvalid(account)
      : Effect.succeed(account)
  )
}

/** Refuses other versions and `Stripe-Context`, the newer header for the account. */
const checkHeaders = (request: HttpRequest): Check => {
  const version = request.header("stripe-version") ?? apiVersion
  return firstOf(
    version !== apiVersion &&
      refuse({ message: `Invalid Stripe API version: ${version}. The emulator speaks ${apiVersion} only.` }),
    request.header("stripe-context") !== undefined &&
      refuse({ message: "The emulator does not know Stripe-Context. Name the account in Stripe-Account." })
  )
}

const checkContentType = (request: HttpRequest): Check => {
  const contentType = request.header("content-type") ?? ""
  return request.body === "" || contentType.startsWith("application/x-www-form-urlencoded")
    ? Effect.void
    : refuse({ message: `Invalid content type: expected application/x-www-form-urlencoded, got ${contentType}.` })
}

const parametersOf = (request: HttpRequest): Effect.Effect<FormInput, ProviderError> =>
  checkContentType(request).pipe(
    Effect.zipRight(Effect.all([parseForm(request.query), parseForm(request.body)])),
    Effect.map(([query, body]) => ({ ...query, ...body }))
  )

interface Operation {
  readonly account: string
  readonly parameters: FormInput
  readonly prepared: Prepared
  /** Whether to answer 500 although the operation takes effect. */
  readonly fails: boolean
}

const failure = { status: internalError.status, body: errorBody(internalError) }

const answerTo = (
  service: Service,
  runOnce: RunOnce,
  request: HttpRequest,
  { account, fails, parameters, prepared }: Operation
): Effect.Effect<Answer, ProviderError | EmulatorError> =>
  Effect.flatMap(unixSeconds, (now) => {
    const { id: requestId, method, path } = request
    const key = method === "POST" ? request.header("idempotency-key") : undefined
    const cause = { account, now, requestId, idempotencyKey: key }
    const operation = (transaction: Transaction) =>
      Effect.map(prepared(requestContext(service, transaction, cause)), (object) =>
        fails ? failure : { status: 200, body: JSON.stringify(object) }
      )
    if (key === undefined) return service.store.transact(operation)
    return runOnce({ scope: account, key, method, path, parameters, requestId, now }, operation)
  })

const echoed = (request: HttpRequest, { replayOf, status }: Answer): Readonly<Record<string, string>> => {
  const account = request.header("stripe-account")
  const key = request.header("idempotency-key")
  return {
    ...(account === undefined ? {} : { "stripe-account": account }),
    ...(key === undefined ? {} : { "idempotency-key": key, "original-request": replayOf ?? request.id }),
    ...(replayOf === undefined ? {} : { "idempotent-replayed": "true" }),
    ...(status < 500 ? {} : { "stripe-should-retry": "false" })
  }
}

const answerToAnother = (request: HttpRequest): Effect.Effect<HttpReply, ProviderError> => {
  const account = request.header("stripe-account") ?? /^\/v1\/accounts\/(\w+)/.exec(request.path)?.[1]
  if (account !== undefined) return accountInvalid(account)
  return request.method === "GET" && request.path === "/v1/account"
    ? Effect.succeed(jsonReply(200, JSON.stringify(makeAccount(anotherPlatformAccountId, 0))))
    : refuse({ status: 404, message: "The emulator has nothing else of another platform." })
}

/** The provider's API: everything under `/v1/`, except calls that a fault makes fail. */
export const makeApi = (
  service: Service
): ((request: HttpRequest) => Effect.Effect<HttpReply, ProviderError | EmulatorError>) => {
  const runOnce = makeIdempotency(service.store)
  const answer = Effect.fnUntraced(function* (request: HttpRequest, fails = false) {
    yield* authenticate(request, service.secretKey)
    yield* checkHeaders(request)
    const { ids, value: route } = yield* routeOf(request)
    const account = yield* accountOf(service, request)
    const parameters = yield* parametersOf(request)
    const prepared = yield* route.prepare(parameters, ids)
    const given = yield* answerTo(service, runOnce, request, { account, fails, parameters, prepared })
    return jsonReply(given.status, given.body, echoed(request, given))
  })
  return (request) => {
    if (isAnotherPlatforms(request)) return answerToAnother(request)
    const fault = service.faults.take(request)
    return fault === "kept_500" ? answer(request, true) : suffer(fault, answer(request))
  }
}
