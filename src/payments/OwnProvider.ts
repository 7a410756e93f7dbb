import { Effect, Option, Record } from "effect"
import { sourceForm, testProviderName } from "../events/Envelope.ts"
import { readerOf, type Translating } from "../events/EventReader.ts"
import type { ProviderEvent } from "../events/stripe/ProviderEvent.ts"
import { ProviderOperationUnsupported, SignatureInvalid } from "../platform/errors/Errors.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { ProviderShape } from "./Provider.ts"
import { stripeProvider, withoutCredentials } from "./stripe/StripeProvider.ts"

const unsupported = (): Effect.Effect<never, ProviderOperationUnsupported> => new ProviderOperationUnsupported()

const unverifiable = (): Effect.Effect<never, SignatureInvalid> =>
  new SignatureInvalid({ message: "The payment provider of this installation sends no such notifications." })

/** A provider that can do nothing: the operations are those of Stripe's adapter, which has them all. */
const nothingSupported = {
  ...Record.map(stripeProvider(withoutCredentials, null), () => unsupported),
  verifyNotification: unverifiable,
  verifyThinNotification: unverifiable
}

/** The operations of a provider that are calls. */
export type ProviderOperation = Exclude<
  keyof ProviderShape,
  "name" | "signatureHeader" | "reader" | "checkSignatureHeader" | "authorizationUrl"
>

export const isOperation = (name: string): name is ProviderOperation => name in nothingSupported

/**
 * A provider of your own: the port's operations that it supports. Each other one fails with
 * `provider_operation_unsupported` (501), and is in no document. Without `retrieveAccount`, accounts are linked unread;
 * without `hasCharges`, no payment is a `milestone.first_payment`; without `listEvents`, lost notifications are not
 * looked for.
 */
export interface OwnProvider
  extends Partial<Omit<ProviderShape, "name" | "signatureHeader" | "reader" | "verifyNotification">> {
  readonly name: ProviderShape["name"]
  readonly notifications?: Translating & {
    /** Such as `x-pixbank-signature`. */
    readonly signatureHeader: string
    /**
     * Verifies the signature over the exact bytes, and returns the notification in this service's form: `data.object` is
     * the provider's own object. Fail with `SignatureInvalid` for everything else, also for a body that can't be read.
     */
    readonly verify: (
      body: Uint8Array,
      signature: string
    ) => Effect.Effect<{ readonly environment: Environment; readonly event: ProviderEvent }, SignatureInvalid>
  }
}

const nowhere: Translating = { translate: () => [] }

/** Another provider than Stripe: `Layer.succeed(Provider, providerOf({ name, … }))`. */
export const providerOf = ({ name, notifications, ...supported }: OwnProvider): ProviderShape => {
  if (!sourceForm.test(name) || name === testProviderName) {
    throw new Error(`Not a name of a provider: ${JSON.stringify(name)}`)
  }
  return {
    ...nothingSupported,
    authorizationUrl: () => Option.none(),
    signatureHeader: "",
    // So that the body of an unsigned request is not read
    checkSignatureHeader: (header) => (header === undefined ? new SignatureInvalid() : Effect.void),
    ...(notifications === undefined
      ? {}
      : {
          signatureHeader: notifications.signatureHeader.toLowerCase(),
          verifyNotification: (body, header = "") => notifications.verify(body, header)
        }),
    ...supported,
    name,
    reader: readerOf(name, notifications ?? nowhere)
  }
}

/** Whether a provider has an operation at all; the account may still lack what it needs. */
export const supports = (provider: ProviderShape, operation: ProviderOperation): boolean =>
  provider[operation] !== nothingSupported[operation]

interface Declared {
  readonly group: string
  readonly name: string
  readonly neededCalls: ReadonlyArray<string>
}

/** The operations of the API that a provider does not support, as `group.name`: they are in no document and no list of tools. */
export const unsupportedOperations = (
  operations: ReadonlyArray<Declared>,
  provider: ProviderShape
): ReadonlySet<string> =>
  new Set(
    operations
      .filter(({ neededCalls }) => !neededCalls.every((call) => isOperation(call) && supports(provider, call)))
      .map(({ group, name }) => `${group}.${name}`)
  )
