import { createHash } from "node:crypto"
import { Clock, Duration, Effect, Layer, Option, Redacted } from "effect"
import Stripe from "stripe"
import { ProviderTimeout, ProviderUnavailable, SignatureInvalid } from "../Errors.ts"
import { type Environment, environments, type ProviderCredentials } from "../Settings.ts"
import type { CreateCheckoutSession } from "./CheckoutSessionsApi.ts"
import type { CreatePrice } from "./PricesApi.ts"
import type { CreateProduct } from "./ProductsApi.ts"
import { type ConnectedAccount, Provider, type SoldItems, type VerifiedNotification } from "./Provider.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import type { ProviderObject, ProviderPage } from "./Schemas.ts"
import { fromStripeError, noFacts } from "./StripeErrors.ts"

/** The only module that speaks to Stripe, through its own package. */

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

/** How far a notification's time may be off, in both directions (contract, Signature, rule 3). */
const toleranceSeconds = 300

/**
 * Marks sessions that this service made, in their metadata: what they sell is known here, and can be completed from the
 * provider where a crash came between the provider's answer and our record.
 */
export const sessionMarker = { key: "svc_source", value: "connected-payments" } as const

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
const toJson = (answer: unknown): ProviderObject => JSON.parse(JSON.stringify(answer))

const withoutSecrets = (object: ProviderObject): ProviderObject => {
  const { client_secret: _, ...rest } = object
  return rest
}

const toPage = (answer: unknown): ProviderPage => {
  const { data, has_more, ...rest } = toJson(answer)
  return { ...rest, data: Array.isArray(data) ? data.map(withoutSecrets) : [], has_more: has_more === true }
}

const hashed = (accountId: string): string => createHash("sha256").update(accountId).digest("hex").slice(0, 16)

const productParams = (params: CreateProduct): Stripe.ProductCreateParams => {
  const { images, marketing_features, ...rest } = params
  return {
    ...rest,
    ...(images === undefined ? {} : { images: [...images] }),
    ...(marketing_features === undefined ? {} : { marketing_features: [...marketing_features] })
  }
}

const priceParams = ({ recurring, ...rest }: CreatePrice): Stripe.PriceCreateParams => {
  if (recurring === undefined) {
    return { ...rest, expand: ["tiers"] }
  }
  const { usage_type: _, ...supported } = recurring
  return { ...rest, recurring: supported, expand: ["tiers"] }
}

const sessionParams = (
  params: CreateCheckoutSession,
  options: StripeProviderOptions
): Stripe.Checkout.SessionCreateParams => {
  const { line_items, metadata, ...rest } = params
  const marked = { ...metadata, [sessionMarker.key]: sessionMarker.value }
  // Filters on metadata look at the payment or subscription for their events: it gets a copy of what the caller gave
  const carried = { metadata: { ...metadata } }
  return {
    ...rest,
    line_items: line_items.map((item) => ({ ...item })),
    metadata: marked,
    ...(params.mode === "payment" ? { payment_intent_data: carried } : { subscription_data: carried }),
    success_url: options.checkoutSuccessUrl,
    cancel_url: options.checkoutCancelUrl,
    expand: ["line_items"]
  }
}

const unique = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(ids)]

const soldItemsOf = (items: ReadonlyArray<Stripe.LineItem>): SoldItems => {
  const prices = items.flatMap((item) => (item.price === null ? [] : [item.price]))
  return {
    priceIds: unique(prices.map((price) => price.id)),
    productIds: unique(prices.map(({ product }) => (typeof product === "string" ? product : product.id)))
  }
}

/** The one `t=` of a signature header. Two of them could be read differently by two readers, so they are refused. */
const timestampOf = (header: string): number | undefined => {
  const times = header.split(",").filter((part) => part.trim().startsWith("t="))
  const [time] = times
  return times.length === 1 && time !== undefined && /^\s*t=\d{1,12}\s*$/.test(time)
    ? Number(time.trim().slice(2))
    : undefined
}

const makeProvider = (options: StripeProviderOptions): Provider["Type"] => {
  const clients = {
    sandbox: Option.map(options.sandbox, (credentials) => makeClient(options, credentials)),
    production: Option.map(options.production, (credentials) => makeClient(options, credentials))
  } satisfies Record<Environment, Option.Option<Stripe>>
  const timeout = Duration.decode(options.timeout ?? "30 seconds")

  /** One call: the client of the account's environment, a deadline over the whole answer, errors as the API says them. */
  const call = <A>(
    operation: string,
    account: ConnectedAccount,
    run: (client: Stripe, scope: { readonly stripeAccount: string }) => Promise<Stripe.Response<A>>
  ): Effect.Effect<A, ProviderFailure | AccountAccessRevoked> =>
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
            // An answer without the provider's error object resolves, whatever its status
            ({ lastResponse }) => lastResponse.statusCode < 400,
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

  const one = (object: Effect.Effect<unknown, ProviderFailure | AccountAccessRevoked>) =>
    Effect.map(object, (answer) => withoutSecrets(toJson(answer)))

  const verifyUnder = (
    environment: Environment,
    secret: Redacted.Redacted,
    body: Buffer,
    header: string,
    now: number
  ): Effect.Effect<VerifiedNotification, SignatureInvalid> =>
    Effect.try({
      try: () => ({
        environment,
        event: Stripe.webhooks.constructEvent(body, header, Redacted.value(secret), toleranceSeconds, undefined, now)
      }),
      catch: (cause) =>
        cause instanceof Stripe.errors.StripeSignatureVerificationError
          ? new SignatureInvalid()
          : new SignatureInvalid({ message: "The notification is signed, but its body is not a provider's event." })
    })

  const secrets = environments.flatMap((environment) =>
    Option.match(options[environment], {
      onNone: () => [],
      onSome: ({ webhookSecrets }) => webhookSecrets.map((secret) => ({ environment, secret }))
    })
  )

  const verifyNotification = Effect.fn("Provider.verifyNotification")(function* (
    bytes: Uint8Array,
    header: string | undefined
  ) {
    const now = yield* Clock.currentTimeMillis
    const time = header === undefined ? undefined : timestampOf(header)
    if (header === undefined || time === undefined || Math.abs(now / 1000 - time) > toleranceSeconds) {
      return yield* new SignatureInvalid()
    }
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const attempts = secrets.map(({ environment, secret }) => verifyUnder(environment, secret, body, header, now))
    return yield* attempts.length === 0 ? new SignatureInvalid() : Effect.firstSuccessOf(attempts)
  })

  return {
    retrieveAccount: (account) =>
      one(
        call("accounts.retrieve", account, (client, scope) => client.accounts.retrieve(account.accountId, {}, scope))
      ),
    hasCharges: (account) =>
      Effect.map(
        call("charges.list", account, (client, scope) => client.charges.list({ limit: 1 }, scope)),
        ({ data }) => data.length > 0
      ),

    createProduct: (account, params, { idempotencyKey }) =>
      one(
        call("products.create", account, (client, scope) =>
          client.products.create(productParams(params), { ...scope, idempotencyKey })
        )
      ),
    retrieveProduct: (account, id) =>
      one(
        call("products.retrieve", account, (client, scope) =>
          client.products.retrieve(id, { expand: ["default_price"] }, scope)
        )
      ),
    listProducts: (account, params) =>
      Effect.map(
        call("products.list", account, (client, scope) => client.products.list(params, scope)),
        toPage
      ),

    createPrice: (account, params, { idempotencyKey }) =>
      one(
        call("prices.create", account, (client, scope) =>
          client.prices.create(priceParams(params), { ...scope, idempotencyKey })
        )
      ),
    retrievePrice: (account, id) =>
      one(
        call("prices.retrieve", account, (client, scope) => client.prices.retrieve(id, { expand: ["tiers"] }, scope))
      ),
    listPrices: (account, params) =>
      Effect.map(
        call("prices.list", account, (client, scope) => client.prices.list(params, scope)),
        toPage
      ),

    createCheckoutSession: (account, params, { idempotencyKey }) =>
      Effect.map(
        call("checkout.sessions.create", account, (client, scope) =>
          client.checkout.sessions.create(sessionParams(params, options), { ...scope, idempotencyKey })
        ),
        (session) => ({
          session: withoutSecrets(toJson(session)),
          soldItems: soldItemsOf(session.line_items?.data ?? [])
        })
      ),
    retrieveCheckoutSession: (account, id) =>
      one(
        call("checkout.sessions.retrieve", account, (client, scope) => client.checkout.sessions.retrieve(id, {}, scope))
      ),
    listCheckoutSessions: (account, params) =>
      Effect.map(
        call("checkout.sessions.list", account, (client, scope) => client.checkout.sessions.list(params, scope)),
        toPage
      ),

    verifyNotification
  }
}

/** `Provider` over the `stripe` package. Environments without credentials answer `provider_account_not_connected`. */
export const stripeProviderLayer = (options: StripeProviderOptions): Layer.Layer<Provider> =>
  Layer.sync(Provider, () => makeProvider(options))
