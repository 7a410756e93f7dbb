import { Clock, Effect, Schedule, type Scope } from "effect"
import { makeApi } from "./api/Api.ts"
import { makeControl } from "./control/Control.ts"
import {
  changeAccount,
  ensureAccount,
  isTarget,
  keepAccount,
  orderPayout,
  orderRenewal,
  type PayoutRequest,
  type RenewalRequest
} from "./control/ControlActions.ts"
import { type Fault, makeFaults } from "./control/Faults.ts"
import type { EmulatorError } from "./EmulatorError.ts"
import { makeNotifier, type Notifier } from "./events/Notifier.ts"
import { errorReply, type HttpReply, type HttpRequest, partsOf } from "./Http.ts"
import { platformAccountId, platformApplicationId } from "./Ids.ts"
import { internalError, type ProviderError, refuse } from "./ProviderError.ts"
import { expireOverdue } from "./pages/HostedPage.ts"
import { findPage } from "./pages/Pages.ts"
import type { Entry } from "./Records.ts"
import { type Handler, serve } from "./Server.ts"
import type { Service } from "./Service.ts"
import { forgetOldAnswers } from "./store/Idempotency.ts"
import { makeStore } from "./store/Store.ts"
import { runTrigger, type Triggered, type TriggerRequest } from "./triggers/Run.ts"

export { anotherPlatformKey } from "./Authentication.ts"
export type { PayoutRequest, RenewalRequest } from "./control/ControlActions.ts"
export type { Fault, FaultKind } from "./control/Faults.ts"
export { EmulatorError } from "./EmulatorError.ts"
export type { Triggered, TriggerRequest } from "./triggers/Run.ts"
export { type TriggerDescription, type TriggerType, triggers } from "./triggers/TriggerList.ts"

export interface EmulatorOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Default 0: any free port. */
  readonly port?: number
  /** The file that keeps the state across restarts and kills; without it the state is in memory only. */
  readonly journalFile?: string
  /** Without `journalFile`: the journal of another emulator to start from, which is not modified. */
  readonly beginWith?: string
  /** The platform's key (`sk_test_...`); requests with any other get 401. */
  readonly secretKey: string
  /** Signs the notifications (`whsec_...`). */
  readonly webhookSecret: string
  /** Signs thin notifications, which go to their own webhook endpoint; default: `webhookSecret`. */
  readonly thinWebhookSecret?: string
}

/** A running emulator of the provider: HTTP for the provider's own SDK, a page for payers, signed notifications. */
export interface Emulator {
  /** Such as `http://127.0.0.1:12111`. */
  readonly url: string
  /** The id of the platform's OAuth application, through which owners of existing accounts grant it access. */
  readonly oauthClientId: string
  /** Sets and stores the URL for connected accounts' notifications. Until then, they wait. */
  readonly setWebhookUrl: (url: string) => Effect.Effect<void>
  readonly setThinWebhookUrl: (url: string) => Effect.Effect<void>
  /** The given account, created if missing, or a new one. Defect: an id other than `acct_` and 16 letters or digits. */
  readonly ensureAccount: (id?: string) => Effect.Effect<string>
  /** Makes the next matching calls fail. Faults are kept in memory only. */
  readonly addFault: (fault: Fault) => Effect.Effect<void>
  readonly clearFaults: Effect.Effect<void>
  /** Creates a payout or moves one to its next state. Defects: an unknown account or payout, an invalid transition. */
  readonly orderPayout: (request: PayoutRequest) => Effect.Effect<string>
  /** Renews, or ends what was canceled. Defects: an unknown account or subscription, and one that has ended. */
  readonly renewSubscription: (request: RenewalRequest) => Effect.Effect<void>
  /** Default account: the only connected one. Defects: an unknown account or object, unknown options. */
  readonly trigger: (request: TriggerRequest) => Effect.Effect<Triggered>
  /** Without a notification; the trigger `account.application.deauthorized` also notifies. */
  readonly revokeAccount: (id: string) => Effect.Effect<void>
  /** Restores the access. Defect: an unknown account. */
  readonly restoreAccount: (id: string) => Effect.Effect<void>
}

const sweepInterval = "10 seconds"

const isNone = refuse({ status: 404, message: "Unrecognized request URL." })

const dispatcher = (service: Service, notifier: Notifier) => {
  const api = makeApi(service)
  const control = makeControl(service, notifier)
  return (request: HttpRequest): Effect.Effect<HttpReply, ProviderError | EmulatorError> => {
    const [, first] = partsOf(request.path) ?? []
    if (first === "v1") return api(request)
    if (first === "_emulator") return control(request)
    const found = findPage(request.path)
    if (found === undefined) return isNone
    const [id = "", token = ""] = found.ids
    return found.value(service, request, id, token)
  }
}

/** Logs no paths, since the hosted page's path is known only to its payer. */
const makeHandler = (service: Service, notifier: Notifier): Handler => {
  const dispatch = dispatcher(service, notifier)
  return (request) =>
    dispatch(request).pipe(
      Effect.catchTag("ProviderError", (error) => Effect.succeed(errorReply(error))),
      Effect.catchAllCause((cause) =>
        Effect.as(
          Effect.logError(`The emulator failed to answer a ${request.method} request (${request.id})`, cause),
          errorReply(internalError)
        )
      )
    )
}

const nameTarget = (notifier: Notifier, entry: Entry, url: string): Effect.Effect<void> =>
  isTarget(url)
    ? Effect.orDie(notifier.setTarget(entry, { url }))
    : Effect.dieMessage(`Not a URL that notifications can be sent to: ${url}`)

const start = Effect.fn("Emulator.start")(function* (options: EmulatorOptions) {
  const store = yield* makeStore(options.journalFile, options.beginWith)
  // Requests without `Stripe-Account` act on the platform's own objects
  yield* keepAccount({ store, platformId: platformAccountId }, platformAccountId)
  yield* forgetOldAnswers(store)
  const notifier = yield* makeNotifier(store, {
    snapshot: options.webhookSecret,
    thin: options.thinWebhookSecret ?? options.webhookSecret
  })
  const faults = makeFaults()
  const serviceAt = (baseUrl: string): Service => ({
    store,
    platformId: platformAccountId,
    secretKey: options.secretKey,
    baseUrl,
    faults
  })
  const url = yield* serve({ host: options.host ?? "127.0.0.1", port: options.port ?? 0 }, (baseUrl) =>
    makeHandler(serviceAt(baseUrl), notifier)
  )
  const service = serviceAt(url)
  yield* expireOverdue(service).pipe(
    Effect.catchAll((error) => Effect.logError("The emulator could not expire sessions", error)),
    Effect.repeat(Schedule.spaced(sweepInterval)),
    Effect.forkScoped
  )
  const emulator: Emulator = {
    url,
    oauthClientId: platformApplicationId,
    setWebhookUrl: (target) => nameTarget(notifier, "snapshot", target),
    setThinWebhookUrl: (target) => nameTarget(notifier, "thin", target),
    ensureAccount: (id) => Effect.orDie(ensureAccount(service, id)),
    addFault: (fault) => Effect.sync(() => faults.add(fault)),
    clearFaults: Effect.sync(() => faults.clear()),
    orderPayout: (request) => Effect.orDie(Effect.map(orderPayout(service, request), ({ id }) => id)),
    renewSubscription: (request) => Effect.orDie(Effect.asVoid(orderRenewal(service, request))),
    trigger: (request) => Effect.orDie(runTrigger(service, { ...request })),
    revokeAccount: (id) => Effect.orDie(Effect.asVoid(changeAccount(service, id, { revoke: true }))),
    restoreAccount: (id) => Effect.orDie(Effect.asVoid(changeAccount(service, id, { restore: true })))
  }
  return emulator
})

/** Runs until the scope closes, by the real time, since it stands in for a remote service. */
export const makeEmulator = (options: EmulatorOptions): Effect.Effect<Emulator, EmulatorError, Scope.Scope> =>
  Effect.withClock(start(options), Clock.make())
