import { call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"

/**
 * The currencies to offer first: that of the account, if the person may read it and it can be read just now. Nothing depends
 * on it but which currency a form begins with, so a failure is not shown.
 */
export const useCurrencies = (): ReadonlyArray<string> | undefined => {
  const { can, environment } = useWorkspace()
  const mayRead = can("payment-account:read")
  const { data, error } = useQuery(mayRead ? `${environment}/catalog/currency` : null, (signal) =>
    call("account", "get", {}, { signal })
  )
  if (mayRead && data === undefined && error === undefined) return undefined
  const own = data?.default_currency
  return typeof own === "string" ? [own] : []
}

/** What a form begins with if the account does not say. */
export const fallbackCurrency = "usd"
