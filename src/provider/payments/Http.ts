import { Effect, Struct } from "effect"
import { handlersOf } from "../../kit/Handlers.ts"
import { reading, writeOnAccount } from "../AccountOperations.ts"
import { withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import type { ProviderObject } from "../Schemas.ts"
import { ChargesApi, CustomersApi, DisputesApi, PaymentIntentsApi, RefundsApi } from "./Api.ts"

export const chargesHandlers = Effect.map(Provider, (provider) =>
  handlersOf(ChargesApi, reading(provider.listCharges, provider.retrieveCharge, withoutPayer))
)

export const paymentIntentsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(PaymentIntentsApi, reading(provider.listPaymentIntents, provider.retrievePaymentIntent, withoutPayer))
)

export const refundsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(RefundsApi, {
    ...reading(provider.listRefunds, provider.retrieveRefund, withoutPayer),
    create: (request) =>
      writeOnAccount({ operation: "refunds.create", action: "refund.created" }, request, (account, options) =>
        Effect.map(provider.createRefund(account, request.payload, options), withoutPayer)
      )
  })
)

/** Removes a dispute's evidence, which can name the payer and hold letters and addresses. */
const withoutEvidence = ({ evidence: _, ...rest }: ProviderObject): ProviderObject => withoutPayer(rest)

export const disputesHandlers = Effect.map(Provider, (provider) =>
  handlersOf(DisputesApi, reading(provider.listDisputes, provider.retrieveDispute, withoutEvidence))
)

/** A customer's fields that are not personal: an allowlist, since the provider may add fields at any time. */
const impersonal = ["id", "object", "created", "currency", "deleted", "delinquent", "livemode"] as const

const withoutPersonalData = (customer: ProviderObject): ProviderObject => Struct.pick(customer, ...impersonal)

export const customersHandlers = Effect.map(Provider, (provider) =>
  handlersOf(CustomersApi, reading(provider.listCustomers, provider.retrieveCustomer, withoutPersonalData))
)
