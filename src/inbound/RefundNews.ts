/** The provider's news about a refund after it was made. The catalog has no event for it: see the guide to events. */
import { Either, Schema } from "effect"
import { amount, currency } from "../events/Fields.ts"
import {
  type Malformed,
  malformed,
  orAbsent,
  type ProviderEvent,
  ProviderName,
  Reference
} from "../events/stripe/ProviderEvent.ts"

/** A refund that the payer will not get: it failed, or was canceled while it waited for the payer. */
export interface FailedRefund {
  readonly refundId: string
  readonly chargeId: string | null
  readonly paymentId: string | null
  /** In the smallest unit of the currency. */
  readonly amount: number
  readonly currency: string
  readonly status: "failed" | "canceled"
  /** The provider's reason; null if it gives none. */
  readonly reason: string | null
}

/** The provider's types of refund news; which of them it sends depends on its version. */
export const refundNewsTypes: ReadonlyArray<string> = ["refund.failed", "refund.updated", "charge.refund.updated"]

export const isRefundNews = ({ type }: Pick<ProviderEvent, "type">): boolean => refundNewsTypes.includes(type)

const Refund = Schema.Struct({
  id: ProviderName,
  status: orAbsent(Schema.String)
})

const Failed = Schema.Struct({
  charge: orAbsent(Schema.compose(Reference, ProviderName)),
  payment_intent: orAbsent(Schema.compose(Reference, ProviderName)),
  amount: amount("What was to be refunded").pipe(Schema.nonNegative()),
  currency,
  failure_reason: orAbsent(ProviderName)
})

const decodeRefund = Schema.decodeUnknownEither(Refund, { errors: "all" })
const decodeFailed = Schema.decodeUnknownEither(Failed, { errors: "all" })

/** The failed refund in an event about a refund; null if the refund has not failed. */
export const failedRefundOf = ({ data }: ProviderEvent): Either.Either<FailedRefund | null, Malformed> =>
  decodeRefund(data.object).pipe(
    Either.flatMap(({ id, status }) =>
      status === "failed" || status === "canceled"
        ? Either.map(
            decodeFailed(data.object),
            (refund): FailedRefund => ({
              refundId: id,
              chargeId: refund.charge,
              paymentId: refund.payment_intent,
              amount: refund.amount,
              currency: refund.currency,
              status,
              reason: refund.failure_reason
            })
          )
        : Either.right(null)
    ),
    Either.mapLeft((error) => malformed("event.data.object", error))
  )
