import { call } from "../../api/Call.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"

/** The currencies to offer first: the account's. A failure is not shown, since it only preselects. */
export const useCurrencies = (): ReadonlyArray<string> | undefined => {
  const { can } = useWorkspace()
  const mayRead = can("payment-account:read", "account.get")
  const { data, error } = useQuery(mayRead ? "catalog/currency" : null, (signal) =>
    call("account", "get", {}, { signal })
  )
  if (mayRead && data === undefined && error === undefined) return undefined
  const own = data?.default_currency
  return typeof own === "string" ? [own] : []
}
