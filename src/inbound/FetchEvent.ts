import { Effect, Either } from "effect"
import { parseProviderEvent } from "../events/stripe/Translate.ts"
import { Accounts } from "../payments/Accounts.ts"
import { Provider } from "../payments/Provider.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import { refuse, refuseUnreadable } from "./ReplayRefusals.ts"

/** Fetches a snapshot event of a tenant's account from the provider, which keeps it for 30 days. */
export const makeFetchEvent = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  return Effect.fnUntraced(function* (tenant: Tenant, providerEventId: string) {
    const fetched = yield* accounts
      .use(tenant, (account) =>
        // Fetched on the account's behalf, the event may not name the account
        Effect.map(provider.retrieveEvent(account, providerEventId), (event) => ({
          ...event,
          account: account.accountId
        }))
      )
      .pipe(Effect.catchTag("ProviderObjectNotFound", (cause) => refuse("event_expired", cause)))
    return yield* Either.mapLeft(parseProviderEvent(fetched), ({ reason }) => refuseUnreadable(reason))
  })
})
