import { Effect } from "effect"
import { accounts } from "../schema/Accounts.ts"
import { endpoints } from "../schema/Endpoints.ts"
import { events } from "../schema/Events.ts"
import { organizations } from "../schema/Organizations.ts"
import { outbox } from "../schema/Outbox.ts"
import { receipts } from "../schema/Receipts.ts"
import { requests } from "../schema/Requests.ts"
import { statistics } from "../schema/Statistics.ts"

/**
 * The schema of version 0.1.0, one file per subject.
 *
 * Keys of tenant tables start with the organization and the environment. Exceptions are tables that are queried before
 * the organization is known: `api_keys` by hash, `provider_accounts` by the provider's account id, `receipts` by the
 * provider's event id, `checkout_pages` by slug.
 *
 * Text in an index is compared by bytes (`COLLATE "C"`). A language's collation comes from the operating system's
 * library: a new version of it would silently reorder the indexes, and a unique one would admit duplicates.
 */
export default Effect.all([organizations, requests, accounts, receipts, endpoints, events, outbox, statistics], {
  discard: true
})
