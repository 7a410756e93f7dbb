import { createHash } from "node:crypto"
import { Duration, Effect, Option, Predicate, Redacted } from "effect"
import Stripe from "stripe"
import { ProviderTimeout, ProviderUnavailable } from "../Errors.ts"
import type { Environment, ProviderCredentials } from "../Settings.ts"
import type { ConnectedAccount } from "./Provider.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import type { ProviderObject, ProviderPage } from "./Schemas.ts"
import { fromStripeError, noFacts } from "./StripeErrors.ts"

/** How every call to Stripe is made, and how its answers are read: what the families of operations share. */

export interface StripeProviderOptions {
  readonly sandbox: Option.Option<ProviderCredentials>
  readonly production: Option.Option<ProviderCredentials>
  /** Another address of the provider's API: an emulator's. */
  readonly apiUrl: Option.Option<URL>
  readonly checkoutSuccessUrl: string
  readonly checkoutCancelUrl: string
  /** For a whole call, answer included. Default 30 s. */
  readonly timeout?: Duration.DurationInput
}

const makeClient = (options: StripeProviderOptions, credentials: ProviderCredentials): Stripe => {
  const url = Option.getOrUndefined(options.apiUrl)
  return new Stripe(Redacted.value(credentials.secretKey), {
    telemetry: false,
    maxNetworkRetries: 0,
    timeout: Duration.toMillis(options.timeout ?? "30 seconds"),
    ...(url === undefined
      ? {}
      : {
          host: url.hostname,
          port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port),
          protocol: url.protocol === "https:" ? ("https" as const) : ("http" as const)
        })
  })
}

/** Answers of the provider are plain JSON to us: its decimals become the strings that they are on the wire. */
export const toJson = (answer: unknown): ProviderObject => JSON.parse(JSON.stringify(answer))

export const withoutSecrets = (object: ProviderObject): ProviderObject => {
  const { client_secret: _, ...rest } = object
  return rest
}

const toPage = (answer: unknown): ProviderPage => {
  const { data, has_more, ...rest } = toJson(answer)
  return { ...rest, data: Array.isArray(data) ? data.map(withoutSecrets) : [], has_more: has_more === true }
}

const hashed = (accountId: string): string => createHash("sha256").update(accountId).digest("hex").slice(0, 16)

/** One call on a connected account. */
export type StripeCall = <A>(
  operation: string,
  account: ConnectedAccount,
  run: (client: Stripe, scope: { readonly stripeAccount: string }) => Promise<Stripe.Response<A>>
) => Effect.Effect<A, ProviderFailure | AccountAccessRevoked>

/** An object that a call answered, as the API shows it. */
export const one = (object: Effect.Effect<unknown, ProviderFailure | AccountAccessRevoked>) =>
  Effect.map(object, (answer) => withoutSecrets(toJson(answer)))

/** A page that a call answered, as the API shows it. */
export const page = (answer: Effect.Effect<unknown, ProviderFailure | AccountAccessRevoked>) =>
  Effect.map(answer, toPage)

/** Makes calls with the client of the account's environment, a deadline over the whole answer, errors as the API says them. */
export const makeStripeCall = (options: StripeProviderOptions): StripeCall => {
  const clients = {
    sandbox: Option.map(options.sandbox, (credentials) => makeClient(options, credentials)),
    production: Option.map(options.production, (credentials) => makeClient(options, credentials))
  } satisfies Record<Environment, Option.Option<Stripe>>
  const timeout = Duration.decode(options.timeout ?? "30 seconds")

  return (operation, account, run) =>
    Option.match(clients[account.environment], {
      onNone: () =>
        Effect.fail(
          new ProviderUnavailable({ cause: `No provider key is set for the environment ${account.environment}` })
        ),
      onSome: (client) =>
        Effect.tryPromise({
          try: () => run(client, { stripeAccount: account.accountId }),
          catch: (thrown) => fromStripeError(thrown, account.accountId)
        }).pipe(
          Effect.tapBoth({
            onFailure: ({ facts }) =>
              Effect.annotateCurrentSpan({
                "http.response.status_code": facts.status ?? 0,
                "provider.error_code": facts.code ?? facts.type,
                "provider.request_id": facts.providerRequestId ?? ""
              }),
            onSuccess: ({ lastResponse }) =>
              Effect.annotateCurrentSpan({
                "http.response.status_code": lastResponse.statusCode,
                "provider.request_id": lastResponse.requestId
              })
          }),
          Effect.tapError(({ facts }) =>
            facts.status === 401
              ? Effect.logError("The provider refuses the platform's key", facts)
              : Effect.logDebug("The provider refused a call", facts)
          ),
          Effect.mapError(({ error }) => error),
          Effect.filterOrFail(
            // An answer without the provider's error object resolves, whatever its status and whoever gave it: a proxy,
            // a redirect. What the provider itself answers says which object it is
            (answer) => answer.lastResponse.statusCode < 300 && Predicate.hasProperty(answer, "object"),
            ({ lastResponse }) => new ProviderUnavailable({ cause: { ...noFacts, status: lastResponse.statusCode } })
          ),
          // The package's own time-out is of silence; a slow drip outlives it
          Effect.timeoutFail({ duration: timeout, onTimeout: () => new ProviderTimeout() }),
          Effect.withSpan(`provider ${operation}`, {
            kind: "client",
            attributes: { "provider.operation": operation, "provider.account": hashed(account.accountId) }
          })
        )
    })
}
