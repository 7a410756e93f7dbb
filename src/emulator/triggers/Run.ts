import { Effect, Schema } from "effect"
import { isConnected } from "../Authentication.ts"
import type { RequestContext } from "../api/Route.ts"
import { happen } from "../control/ControlActions.ts"
import { decodeInput, maybe } from "../control/ControlInput.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import { invalid, type ProviderError, refuse } from "../ProviderError.ts"
import type { Service } from "../Service.ts"
import { apiVersions } from "../Versions.ts"
import { accountTriggers } from "./AccountTriggers.ts"
import { checkoutTriggers, paymentTriggers, payoutTriggers, subscriptionTriggers } from "./PaymentTriggers.ts"
import type { Implementations } from "./Trigger.ts"
import { decoders, isTriggerType, type TriggerType, triggers } from "./TriggerList.ts"

export interface TriggerRequest {
  readonly type: TriggerType
  /** Default: the only connected account. */
  readonly account?: string
  /** The version of its snapshots; default: the target's. */
  readonly api_version?: (typeof apiVersions)[number]
  readonly [option: string]: unknown
}

export interface TriggeredEvent {
  readonly id: string
  readonly type: string
}

export interface Triggered {
  readonly type: TriggerType
  readonly account: string
  /** The id of the trigger's object, such as the payment intent's. */
  readonly object: string
  /** The events with an object, in order, whether or not they are sent. */
  readonly events: ReadonlyArray<TriggeredEvent>
  readonly thin_events: ReadonlyArray<TriggeredEvent>
}

const implementations: Implementations = {
  ...paymentTriggers,
  ...checkoutTriggers,
  ...subscriptionTriggers,
  ...payoutTriggers,
  ...accountTriggers
}

type Happens = (context: RequestContext) => Effect.Effect<string, ProviderError>

/** Decodes a trigger's options, and refuses unknown ones, before anything happens. */
const prepare = <T extends TriggerType>(type: T, input: unknown): Effect.Effect<Happens, ProviderError> =>
  Effect.map(decoders[type].decode(input), (options) => (context) => implementations[type](context, options))

const common = Schema.Struct({ account: maybe(Schema.String), api_version: maybe(Schema.Literal(...apiVersions)) })

const typeOf = (type: unknown): Effect.Effect<TriggerType, ProviderError> =>
  typeof type === "string" && isTriggerType(type)
    ? Effect.succeed(type)
    : refuse({
        status: 422,
        param: "type",
        message: `Unknown trigger: ${JSON.stringify(type)}. There is: ${triggers.map((one) => one.type).join(", ")}.`
      })

const mostNamed = 10

const accountOf = (
  service: Service,
  named: string | undefined
): Effect.Effect<string, ProviderError | EmulatorError> =>
  named !== undefined
    ? Effect.succeed(named)
    : service.store.transact((transaction) => {
        const platform = transaction.in(service.platformId)
        const connected = platform
          .all("account")
          .filter(({ id }) => id !== service.platformId && isConnected(platform, id))
        const [only] = connected
        return only === undefined || connected.length > 1
          ? invalid(
              "account",
              connected.length === 0
                ? "No account is connected: name one."
                : `Name the account: ${connected.length} are connected, ${connected
                    .slice(0, mostNamed)
                    .map(({ id }) => id)
                    .join(", ")}${connected.length > mostNamed ? " and others" : ""}.`,
              "parameter_missing"
            )
          : Effect.succeed(only.id)
      })

const observed =
  (type: TriggerType, happens: Happens) =>
  (context: RequestContext): Effect.Effect<Triggered, ProviderError> => {
    const { account, objects, platform } = context
    const events = () => objects.all("event")
    const thinEvents = () => [...platform.objects.all("thin_event"), ...objects.all("thin_event")]
    const before = new Set([...events(), ...thinEvents()].map(({ id }) => id))
    const newOnes = (all: ReadonlyArray<TriggeredEvent>): ReadonlyArray<TriggeredEvent> =>
      all.filter(({ id }) => !before.has(id)).map(({ id, type }) => ({ id, type }))
    return Effect.map(happens(context), (object) => ({
      type,
      account,
      object,
      events: newOnes(events()),
      thin_events: newOnes(thinEvents())
    }))
  }

/** In one transaction, with everything that leads to it. */
export const runTrigger = Effect.fnUntraced(function* (
  service: Service,
  { account, api_version, type, ...options }: Readonly<Record<string, unknown>>
) {
  const known = yield* typeOf(type)
  const { account: named, api_version: notifiedIn } = yield* decodeInput(common, {
    ...(account === undefined ? {} : { account }),
    ...(api_version === undefined ? {} : { api_version })
  })
  const happens = yield* prepare(known, options)
  const on = yield* accountOf(service, named)
  return yield* happen(service, on, observed(known, happens), notifiedIn)
})
