import { ProviderRequestRefused } from "../platform/errors/Errors.ts"
import type { ProviderCallFailure } from "./ProviderErrors.ts"

/**
 * Currencies whose amounts the provider accepts only if they end in zeros: one zero for those with three decimals,
 * since it charges no thousandths, and two zeros for two that no longer have decimals but are still written with two
 * (https://docs.stripe.com/currencies).
 */
const endings: ReadonlyMap<string, string> = new Map([
  ...["bhd", "jod", "kwd", "omr", "tnd"].map((currency) => [currency, "0"] as const),
  ...["isk", "ugx"].map((currency) => [currency, "00"] as const)
])

export const roundedAmounts = "Amounts in BHD, JOD, KWD, OMR and TND end in 0, those in ISK and UGX in 00"

/** Adds the rule to the refusal of an amount in such a currency, for which the provider has no code. */
export const explainRounding =
  (currency: string | undefined) =>
  <E extends ProviderCallFailure>(failure: E): E | ProviderRequestRefused => {
    const ending = endings.get(currency ?? "")
    if (ending === undefined || failure._tag !== "ProviderRequestRefused") return failure
    const { cause, code, fields, message } = failure
    return fields.some((field) => /amount|maximum|minimum|preset/.test(field))
      ? new ProviderRequestRefused({
          cause,
          code,
          fields,
          message: `${message} The provider accepts amounts in ${currency} only if they end in ${ending}.`
        })
      : failure
  }
