import { createHash } from "node:crypto"
import { IncomingMessage } from "node:http"
import { performance } from "node:perf_hooks"
import { Clock, Duration, Effect, Fiber, Option, Predicate, Random, Redacted } from "effect"
import Stripe from "stripe"
import { hasErrorCode } from "../../platform/errors/ErrorCode.ts"
import { ProviderOutcomeUnknown, ProviderTimeout, ProviderUnavailable } from "../../platform/errors/Errors.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { serverAttributes, serverOf } from "../../platform/kit/UrlServer.ts"
import type { ProviderCredentials } from "../../platform/settings/Settings.ts"
import { compareClock } from "../../platform/telemetry/ClockSkew.ts"
import type { MetricsWriter } from "../../platform/telemetry/Metrics.ts"
import { annotateOwnSpan } from "../../platform/telemetry/Spans.ts"
import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import { inOurNames, pathIdNames } from "../RefusalReasons.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import { type CallFailure, type FailedCall, fromStripeError, isKept, noAnswer } from "./StripeErrors.ts"

type HttpClient = NonNullable<Stripe.StripeConfig["httpClient"]>
type Answer = Awaited<ReturnType<HttpClient["makeRequest"]>>

/** The maximum length of an answer, in characters; a page of a hundred objects is far below it. */
const maxAnswer = 16 * 1024 * 1024

/**
 * Stripe's HTTP client without the package's own retries, and with bounded answers.
 *
 * The package retries a call whose connection was closed, whatever its settings, and recognizes that by the error's
 * code. Only `repeated` decides about retries, so the code is hidden. The package also reads an answer for as long as
 * data arrives, even if no caller waits any more; here, the connection is closed when the call's time is over, or when
 * the answer exceeds `maxAnswer`. Finally, it treats every answer as a JSON object: it loses the status of an answer
 * that is not JSON, and `true` or a string makes it throw in a promise that nobody awaits, which ends the process.
 * Proxies and firewalls send such answers. Here, an answer that is not a JSON object is read as an empty one, so that
 * its status decides.
 */
export const stripeHttpClient = (): HttpClient => {
  const client: HttpClient = Stripe.createNodeHttpClient()
  return {
    getClientName: () => client.getClientName(),
    makeRequest: async (...request) => {
      const timeoutMillis = request[7]
      try {
        return bounded(await client.makeRequest(...request), timeoutMillis, keyOf(request))
      } catch (cause) {
        throw hasErrorCode(cause, "ECONNRESET", "EPIPE") ? new Error("The connection was closed", { cause }) : cause
      }
    }
  }
}

/** Unless the package generated it: no repeat reuses such a key. */
const keyOf = ([, , , , headers]: Parameters<HttpClient["makeRequest"]>): Readonly<Record<string, string>> => {
  const key = Object.entries(headers).find(([name]) => name.toLowerCase() === "idempotency-key")?.[1]
  return typeof key === "string" && !key.startsWith("stripe-node-retry-") ? { "idempotency-key": key } : {}
}

const bounded = (answer: Answer, timeoutMillis: number, key: Readonly<Record<string, string>>): Answer => ({
  getStatusCode: () => answer.getStatusCode(),
  getHeaders: () => ({ ...answer.getHeaders(), ...key }),
  getRawResponse: () => answer.getRawResponse(),
  toStream: (onComplete) => answer.toStream(onComplete),
  toJSON: () => {
    const message = answer.getRawResponse()
    if (!(message instanceof IncomingMessage)) throw new Error("Stripe's Node client answers with Node's own messages")
    return new Promise((resolve, reject) => {
      answer.toJSON().then(
        (json) => resolve(Predicate.isRecord(json) ? json : {}),
        (error: unknown) => (error instanceof SyntaxError ? resolve({}) : reject(error))
      )
      const giveUp = (reason: string) => {
        // Reject before the closed connection is noticed, which would count as worth a retry
        reject(new Error(reason))
        message.destroy()
      }
      const timer = setTimeout(() => giveUp("The answer takes too long"), timeoutMillis)
      let length = 0
      message.on("data", (text: string) => {
        length += text.length
        if (length > maxAnswer) giveUp("The answer is too long")
      })
      message.once("close", () => clearTimeout(timer))
    })
  }
})

export const maxRepeats = 2

/** 250 ms, then 500 ms, shortened by up to half, but at least the provider's Retry-After. */
const pauseBefore = (repeat: number, { retryAfter }: FailedCall): Effect.Effect<number> =>
  Effect.map(Random.nextRange(0.5, 1), (jitter) => Math.max(retryAfter ?? 0, 250 * 2 ** (repeat - 1) * jitter))

/**
 * Retries a call while its failures are transient: at most twice, with jittered pauses, within the deadline. If the
 * next pause would exceed the deadline, the call fails at once: its failure says more than a timeout.
 *
 * @param attempt makes the call; the first attempt is number 0
 * @param deadline the limit for all attempts and pauses together
 */
export const repeated = <A, E extends FailedCall, R>(
  attempt: (repeat: number) => Effect.Effect<A, E, R>,
  deadline: Duration.Duration
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const end = (yield* Clock.currentTimeMillis) + Duration.toMillis(deadline)
    const from = (repeat: number): Effect.Effect<A, E, R> =>
      Effect.catchAll(attempt(repeat), (failure) =>
        Effect.gen(function* () {
          const pause = yield* pauseBefore(repeat + 1, failure)
          const now = yield* Clock.currentTimeMillis
          return failure.transient && repeat < maxRepeats && now + pause < end
            ? yield* Effect.zipRight(Effect.sleep(pause), from(repeat + 1))
            : yield* Effect.fail(failure)
        })
      )
    return yield* from(0)
  })

/**
 * Limits concurrent calls per name with a semaphore, so that one busy tenant does not use up the platform's rate limit
 * at the provider. Further calls wait, first come, first served. A caller interrupted while waiting gives up its place.
 * A later interrupt does not end the call at the provider, so the permit is held until the call ends.
 */
export const makeBoundedPerName = (bound: number) => {
  const inUse = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()

  const enter = (name: string) => {
    const entry = inUse.get(name) ?? { semaphore: Effect.unsafeMakeSemaphore(bound), users: 0 }
    entry.users += 1
    inUse.set(name, entry)
    return entry
  }

  /** Removes a name that is no longer in use, since there are as many names as tenants. */
  const leave = (name: string, entry: ReturnType<typeof enter>) => {
    entry.users -= 1
    if (entry.users === 0) {
      inUse.delete(name)
    }
  }

  return <A, E, R>(name: string, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const entry = enter(name)
        const { semaphore } = entry
        const left = Effect.sync(() => leave(name, entry))
        return restore(semaphore.take(1)).pipe(
          Effect.onInterrupt(() => left),
          // In a separate fiber, since the call continues after its caller was interrupted
          Effect.zipRight(Effect.forkDaemon(Effect.ensuring(call, Effect.zipRight(semaphore.release(1), left)))),
          Effect.flatMap((running) => restore(Fiber.join(running)))
        )
      })
    )
}

/** The Stripe adapter's options: credentials by environment, and settings of its calls. */
export interface StripeProviderOptions {
  readonly sandbox: Option.Option<ProviderCredentials>
  readonly production: Option.Option<ProviderCredentials>
  /** Overrides the address of the provider's API, for example with an emulator's. */
  readonly apiUrl: Option.Option<URL>
  /**
   * The ids of the platform's OAuth application; in an environment without one, existing accounts can't be connected.
   */
  readonly oauthClientIds?: { readonly [E in Environment]?: string }
  readonly checkoutSuccessUrl: string
  readonly checkoutCancelUrl: string
  /** Timeout of a whole call, including its answer, retries and the wait for a permit. Default 30 s. */
  readonly timeout?: Duration.DurationInput
  /** Maximum concurrent calls per connected account and process; further calls wait. Default 20. */
  readonly concurrencyPerAccount?: number
}

const defaultTimeout = Duration.seconds(30)
const defaultConcurrencyPerAccount = 20

const attributesOf = ({ apiUrl }: StripeProviderOptions) =>
  serverAttributes(Option.getOrElse(apiUrl, () => new URL("https://api.stripe.com")))

const makeClient = (options: StripeProviderOptions, credentials: ProviderCredentials): Stripe => {
  const url = Option.getOrUndefined(options.apiUrl)
  return new Stripe(Redacted.value(credentials.secretKey), {
    telemetry: false,
    maxNetworkRetries: 0,
    httpClient: stripeHttpClient(),
    timeout: Duration.toMillis(options.timeout ?? defaultTimeout),
    ...(url === undefined
      ? {}
      : {
          ...serverOf(url),
          protocol: url.protocol === "https:" ? ("https" as const) : ("http" as const)
        })
  })
}

/** An answer as plain JSON: the package's decimals become strings again, as on the wire. */
export const toJson = (answer: unknown): ProviderObject => JSON.parse(JSON.stringify(answer))

const withoutSecretsIn = (part: unknown): unknown => {
  if (Array.isArray(part)) return part.map(withoutSecretsIn)
  return Predicate.isReadonlyRecord(part) ? withoutSecrets(part) : part
}

/** That let a payer's browser act on it: its own and those of nested objects. */
export const withoutSecrets = (object: ProviderObject): ProviderObject => {
  const shown: Record<string, unknown> = {}
  for (const [name, part] of Object.entries(object)) {
    // The integrator's own pairs may have any name
    if (name !== "client_secret") shown[name] = name === "metadata" ? part : withoutSecretsIn(part)
  }
  return shown
}

const toPage = (answer: unknown): ProviderPage => {
  const { data, has_more, ...rest } = toJson(answer)
  return { ...rest, data: Array.isArray(data) ? data.map(withoutSecrets) : [], has_more: has_more === true }
}

const hashed = (accountId: string): string => createHash("sha256").update(accountId).digest("hex").slice(0, 16)

export interface CallOptions {
  /** Disables retries, for a write that must never be repeated. */
  readonly once?: boolean
}

/**
 * Makes one call on a connected account. `run` may be retried, so it must be a read, or a write that is safe to repeat:
 * a POST with an idempotency key, or a DELETE. Make any other write `once`.
 */
export type StripeCall = <A>(
  operation: string,
  account: ConnectedAccount,
  run: (client: Stripe, scope: { readonly stripeAccount: string }) => Promise<Stripe.Response<A>>,
  options?: CallOptions
) => ProviderCall<A>

export const one = (object: ProviderCall<unknown>) => Effect.map(object, (answer) => withoutSecrets(toJson(answer)))

/** A refusal of that id names the field `id`, whatever Stripe calls it. */
export const named = (object: ProviderCall<unknown>) => Effect.mapError(one(object), inOurNames(pathIdNames))

export const page = (answer: ProviderCall<unknown>) => Effect.map(answer, toPage)

/** The page of a call with an object's id in the path: as with `named`, a refusal of that id names `id`. */
export const namedPage = (answer: ProviderCall<unknown>) => Effect.mapError(page(answer), inOurNames(pathIdNames))

/** Starts a call's timer; returns callbacks that record the outcome on the call's span and in the metrics. */
const report = (metrics: MetricsWriter | null, operation: string, environment: Environment) =>
  Effect.sync(() => {
    const startedAt = performance.now()
    const record = (status: number | undefined, reason: string) =>
      metrics?.record("connected_payments.provider.call.duration", (performance.now() - startedAt) / 1000, [
        environment,
        operation,
        status === undefined ? "" : String(status),
        reason
      ])
    return {
      onFailure: ({ facts }: CallFailure) => {
        record(facts.status, facts.type)
        return annotateOwnSpan({
          ...(facts.status === undefined ? {} : { "http.response.status_code": facts.status }),
          ...(facts.providerRequestId === undefined ? {} : { "provider.request_id": facts.providerRequestId }),
          ...(facts.code === undefined ? {} : { "provider.error_code": facts.code }),
          ...(facts.declineCode === undefined ? {} : { "provider.decline_code": facts.declineCode }),
          "error.type": facts.type
        })
      },
      onSuccess: ({ lastResponse }: Stripe.Response<unknown>) => {
        record(lastResponse.statusCode, "")
        return annotateOwnSpan({
          "http.response.status_code": lastResponse.statusCode,
          "provider.request_id": lastResponse.requestId
        })
      }
    }
  })

const log = ({ facts }: CallFailure) =>
  // OAuth also answers 401 if the account is not connected
  facts.status === 401 && facts.type !== "invalid_client"
    ? Effect.logError("The provider refuses the platform's key", facts)
    : Effect.logDebug("The provider refused a call", facts)

/** Whether the answer has an `object` type, as Stripe's answers do; a `list` must be a page, and a page holds objects only. */
const isOfKind = (answer: Stripe.Response<unknown>): boolean =>
  Predicate.hasProperty(answer, "object") &&
  typeof answer.object === "string" &&
  (Predicate.hasProperty(answer, "data") && Array.isArray(answer.data)
    ? answer.data.every(Predicate.isRecord)
    : answer.object !== "list")

/**
 * Whether the answer is Stripe's own. The package accepts every answer without an error object, even a proxy's or a
 * redirect; Stripe's answers have an `object` field, and those of its OAuth the account's id.
 */
const isProviders = (answer: Stripe.Response<unknown>): boolean =>
  answer.lastResponse.statusCode < 300 && (isOfKind(answer) || Predicate.hasProperty(answer, "stripe_user_id"))

const notProviders = ({ lastResponse }: Stripe.Response<unknown>): CallFailure => {
  const facts = noAnswer({ status: lastResponse.statusCode, requestId: lastResponse.requestId })
  const { headers, idempotencyKey, statusCode } = lastResponse
  const keyed = idempotencyKey === undefined ? headers : { ...headers, "idempotency-key": idempotencyKey }
  return isKept(statusCode, keyed)
    ? { error: new ProviderOutcomeUnknown({ cause: facts }), facts, transient: false, retryAfter: undefined }
    : {
        error: new ProviderUnavailable({ cause: facts }),
        facts,
        transient: statusCode >= 500,
        retryAfter: undefined
      }
}

/** Bounded per account, with retries of transient failures within one deadline. */
export const makeStripeCall = (options: StripeProviderOptions, metrics: MetricsWriter | null = null): StripeCall => {
  const clients = {
    sandbox: Option.map(options.sandbox, (credentials) => makeClient(options, credentials)),
    production: Option.map(options.production, (credentials) => makeClient(options, credentials))
  } satisfies Record<Environment, Option.Option<Stripe>>
  const server = attributesOf(options)
  const deadline = Duration.decode(options.timeout ?? defaultTimeout)
  const bounded = makeBoundedPerName(options.concurrencyPerAccount ?? defaultConcurrencyPerAccount)

  return (operation, account, run, { once = false } = {}) =>
    Option.match(clients[account.environment], {
      onNone: () =>
        Effect.fail(
          new ProviderUnavailable({ cause: `No provider key is set for the environment ${account.environment}` })
        ),
      onSome: (client) => {
        const attempt = (repeat: number) =>
          Effect.flatMap(report(metrics, operation, account.environment), (reported) =>
            Effect.tapBoth(
              Effect.tryPromise({
                try: () => run(client, { stripeAccount: account.accountId }),
                catch: (thrown) => fromStripeError(thrown, account.accountId)
              }),
              reported
            )
          ).pipe(
            Effect.tapError(log),
            Effect.filterOrFail(isProviders, notProviders),
            Effect.tap(({ lastResponse }) => {
              const date = Date.parse(lastResponse.headers["date"] ?? "")
              return Number.isNaN(date) ? Effect.void : compareClock("provider", date)
            }),
            Effect.withSpan(`provider ${operation}`, {
              kind: "client",
              attributes: {
                "provider.operation": operation,
                "provider.account": hashed(account.accountId),
                environment: account.environment,
                ...server,
                ...(repeat === 0 ? {} : { "http.request.resend_count": repeat })
              }
            }),
            // Each attempt takes its own permit, so that the pause before a retry blocks no other call
            (call) => bounded(`${account.environment} ${account.accountId}`, call)
          )
        return (once ? attempt(0) : repeated(attempt, deadline)).pipe(
          Effect.mapError(({ error }) => error),
          // The package's own timeout only bounds idle time, which a slowly dripping answer never reaches
          Effect.timeoutFail({ duration: deadline, onTimeout: () => new ProviderTimeout() })
        )
      }
    })
}
