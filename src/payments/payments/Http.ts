import { Effect, Struct } from "effect"
import { Principal } from "../../identity/Principal.ts"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { listing, reading, writeOnAccount } from "../AccountOperations.ts"
import { CheckoutSessions } from "../checkout-sessions/CheckoutSessions.ts"
import type { Sale } from "../checkout-sessions/SoldItemsRepo.ts"
import { withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import { ChargesApi, CustomersApi, DisputesApi, PaymentIntentsApi, RefundsApi } from "./Api.ts"

export const chargesHandlers = handlersOf(ChargesApi, Provider, (provider) =>
  reading(provider.listCharges, provider.retrieveCharge, withoutPayer)
)

/** Adds its sale to each payment intent of a page, if this service recorded it. */
export const withSales =
  (sessions: CheckoutSessions["Type"]) =>
  (page: ProviderPage): Effect.Effect<ProviderPage, ServiceUnavailable, Principal> =>
    Effect.gen(function* () {
      const ids = page.data.map(({ id }) => String(id))
      const sales = new Map((yield* sessions.salesOf(yield* Principal, ids)).map((sale) => [sale.paymentId, sale]))
      return {
        ...page,
        data: page.data.map((intent) => ({ ...intent, sale: shownSale(sales.get(String(intent["id"]))) }))
      }
    })

const shownSale = (sale: Sale | undefined) =>
  sale === undefined
    ? null
    : {
        checkout_session: sale.session,
        description: sale.description,
        client_reference_id: sale.reference,
        checkout_page: sale.checkoutPage
      }

export const paymentIntentsHandlers = handlersOf(
  PaymentIntentsApi,
  Effect.all([Provider, CheckoutSessions]),
  ([provider, sessions]) => ({
    ...reading(provider.listPaymentIntents, provider.retrievePaymentIntent, withoutPayer),
    list: ({ urlParams: { sale, ...urlParams } }) => {
      const listed = listing(provider.listPaymentIntents, withoutPayer)({ urlParams })
      return sale === true ? Effect.flatMap(listed, withSales(sessions)) : listed
    }
  })
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
