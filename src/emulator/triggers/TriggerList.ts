import { type Effect, Option, Schema, SchemaAST, Struct } from "effect"
import { accountChange } from "../control/AccountChanges.ts"
import { amount, currency, decodeInput, metadata, noOptions, option, word } from "../control/ControlInput.ts"
import type { ProviderError } from "../ProviderError.ts"

export interface TriggerDescription {
  readonly type: string
  readonly description: string
  /** Its own options, besides the common ones, each with its meaning and its default. */
  readonly options: Readonly<Record<string, string>>
}

const money = {
  amount: option(amount, "in the smallest currency unit; default 1500"),
  currency: option(currency, "default brl"),
  metadata: option(metadata, "of the object that the event is about")
}

const laterPayment = Schema.Struct({
  session: option(Schema.String, "a session, open or not paid yet; default: a new one"),
  method: option(Schema.Literal("boleto", "pix"), "boleto (bank slip) or pix (instant transfer); default boleto"),
  ...money
})

const payout = Schema.Struct({
  payout: option(Schema.String, "the payout to move to this state; default: a new one"),
  ...money,
  automatic: option(Schema.Boolean, "false for a manual payout; default true")
})

const newSubscription = Schema.Struct({
  items: option(
    Schema.Int.pipe(Schema.between(1, 20)),
    "how many different prices it has, 1 to 20; the event shows only the first 10; default 1"
  ),
  ...money,
  amount: option(amount, "of each price, in the smallest currency unit; default 1500")
})

const subscription = Schema.Struct({
  subscription: option(Schema.String, "the subscription; default: a new one"),
  ...newSubscription.fields
})

const thin = option(Schema.Boolean, "true sends the thin form too; default false")
const snapshot = option(Schema.Boolean, "true sends the snapshot too; default false")

const described = <A, I>(description: string, options: Schema.Schema<A, I>) => ({
  description,
  /** Refuses unknown options too. */
  decode: (input: unknown): Effect.Effect<A, ProviderError> => decodeInput(options, input),
  meanings: Object.fromEntries(
    SchemaAST.getPropertySignatures(options.ast).map(({ name, type }) => [
      String(name),
      Option.getOrElse(SchemaAST.getDocumentationAnnotation(type), () => "")
    ])
  )
})

/** Every trigger also takes `account` and `api_version` (the version of its snapshots). */
const list = {
  "payment_intent.succeeded": described("A payment by card succeeds.", Schema.Struct(money)),
  "payment_intent.payment_failed": described("A payment by card is declined.", Schema.Struct(money)),
  "charge.refunded": described(
    "A payment is refunded, in part or in full.",
    Schema.Struct({
      charge: option(Schema.String, "the charge; default: of a new payment"),
      refund_amount: option(amount, "in the smallest currency unit; default: all that is left"),
      ...money
    })
  ),
  "refund.updated": described(
    "A pending refund arrives: refunds of bank slips and instant transfers are pending at first.",
    Schema.Struct({
      refund: option(Schema.String, "a pending refund; default: of a new payment by bank slip"),
      ...money
    })
  ),
  "refund.failed": described(
    "A refund fails, even after it succeeded: the money returns to the balance.",
    Schema.Struct({
      refund: option(Schema.String, "a pending or succeeded refund; default: of a new payment by card"),
      reason: option(word, "default expired_or_canceled_card"),
      ...money
    })
  ),
  "charge.dispute.created": described(
    "A payer disputes a payment; the amount and a fee leave the balance.",
    Schema.Struct({
      charge: option(Schema.String, "the charge; default: of a new payment"),
      reason: option(word, "default fraudulent"),
      ...money
    })
  ),
  "charge.dispute.closed": described(
    "A dispute ends: it is won and the amount returns to the balance, or it is lost.",
    Schema.Struct({
      dispute: option(Schema.String, "the dispute; default: a new one"),
      outcome: option(Schema.Literal("won", "lost"), "won or lost; default lost"),
      ...money
    })
  ),
  "checkout.session.completed": described(
    "A payer completes a checkout session; by bank slip or instant transfer it is not paid yet.",
    Schema.Struct({
      session: option(Schema.String, "an open session; default: a new one"),
      method: option(
        Schema.Literal("card", "boleto", "pix"),
        "card, boleto (bank slip) or pix (instant transfer); default card"
      ),
      ...money
    })
  ),
  "checkout.session.async_payment_succeeded": described(
    "The bank slip or instant transfer of a completed session is paid.",
    laterPayment
  ),
  "checkout.session.async_payment_failed": described(
    "The bank slip or instant transfer of a completed session expires unpaid.",
    laterPayment
  ),
  "customer.subscription.created": described("A payer subscribes and pays the first invoice.", newSubscription),
  "invoice.paid": described("A subscription is renewed and its invoice is paid.", subscription),
  "invoice.payment_failed": described("A subscription is due for renewal and the card is declined.", subscription),
  "customer.subscription.deleted": described("A subscription is canceled at once.", subscription),
  "payout.created": described("A payout is created.", payout),
  "payout.updated": described("A payout is on its way to the bank.", payout),
  "payout.paid": described("A payout arrives at the bank.", payout),
  "payout.failed": described("The bank returns a payout.", payout),
  "payout.canceled": described("A payout is canceled before it is sent to the bank.", payout),
  "account.updated": described(
    "An account's status or profile changes; without options a document becomes due, or what is due is submitted.",
    Schema.Struct({ ...accountChange, thin })
  ),
  "account.application.deauthorized": described(
    "The account's owner revokes the platform's access.",
    Schema.Struct({ thin })
  ),
  "v1.account.updated": described(
    "The same as account.updated, as a thin notification.",
    Schema.Struct({ ...accountChange, snapshot })
  ),
  "v1.capability.updated": described(
    "A capability of the account changes; the thin notification is about the capability.",
    Schema.Struct({
      capability: option(word, "default card_payments"),
      status: option(Schema.Literal("active", "pending", "inactive"), "active, pending or inactive; default inactive")
    })
  ),
  "v2.core.account[requirements].updated": described(
    "An account's requirements change; the thin notification has no snapshot.",
    Schema.Struct(accountChange)
  ),
  "v1.account.application.deauthorized": described(
    "The same as account.application.deauthorized, as a thin notification without an object.",
    Schema.Struct({ snapshot })
  ),
  "v2.core.event_destination.ping": described(
    "The provider tests the platform's entry for thin notifications; nothing happens to an account.",
    noOptions
  )
}

export type TriggerType = keyof typeof list

export type OptionsOf<T extends TriggerType> = Effect.Effect.Success<ReturnType<(typeof list)[T]["decode"]>>

/** Decodes the options of each trigger. */
export const decoders: {
  readonly [T in TriggerType]: { readonly decode: (input: unknown) => Effect.Effect<OptionsOf<T>, ProviderError> }
} = list

export const triggers: ReadonlyArray<TriggerDescription & { readonly type: TriggerType }> = Struct.entries(list).map(
  ([type, { description, meanings }]) => ({ type, description, options: meanings })
)

export const isTriggerType = (type: string): type is TriggerType => Object.hasOwn(list, type)
