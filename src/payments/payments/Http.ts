import { Effect, Struct } from "effect"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { reading, writeOnAccount } from "../AccountOperations.ts"
import { withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import type { ProviderObject } from "../Schemas.ts"
import { ChargesApi, CustomersApi, DisputesApi, PaymentIntentsApi, RefundsApi } from "./Api.ts"

export const chargesHandlers = handlersOf(ChargesApi, Provider, (provider) =>
  reading(provider.listCharges, provider.retrieveCharge, withoutPayer)
)

export const paymentIntentsHandlers = handlersOf(PaymentIntentsApi, Provider, (provider) =>
  reading(provider.listPaymentIntents, provider.retrievePaymentIntent, withoutPayer)
)

export const refundsHandlers = handlersOf(RefundsApi, Provider, (provider) => ({
  ...reading(provider.listRefunds, provider.retrieveRefund, withoutPayer),
  create: (request) =>
    writeOnAccount({ operation: "refunds.create", action: "refund.created" }, request, (account, options) =>
      Effect.map(provider.createRefund(account, request.payload, options), withoutPayer)
    )
}))

/** Removes a dispute's evidence, which can name the payer and hold letters and addresses. */
const withoutEvidence = ({ evidence: _, ...rest }: ProviderObject): ProviderObject => withoutPayer(rest)

export const disputesHandlers = handlersOf(DisputesApi, Provider, (provider) =>
  reading(provider.listDisputes, provider.retrieveDispute, withoutEvidence)
)

/** A customer's fields that are not personal: an allowlist, since the provider may add fields at any time. */
const impersonal = ["id", "object", "created", "currency", "deleted", "delinquent", "livemode"] as const

const withoutPersonalData = (customer: ProviderObject): ProviderObject => Struct.pick(customer, ...impersonal)

export const customersHandlers = handlersOf(CustomersApi, Provider, (provider) =>
  reading(provider.listCustomers, provider.retrieveCustomer, withoutPersonalData)
)
