import { Link } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { textAt } from "../../api/Reading.ts"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"

/** What a payment or session sold, in words; undefined if it was not recorded. */
export const soldOf = (object: unknown): string | undefined =>
  textAt(object, "sale", "description") ?? textAt(object, "description")

/** The shop's reference of a payment's or session's order. */
export const orderOf = (object: unknown): string | undefined =>
  textAt(object, "sale", "client_reference_id") ?? textAt(object, "client_reference_id")

/** The API's limit of a page; there are no more checkout pages than that. */
const allPages = 100

/** The checkout page at which something was sold, by its title. */
export const SoldAt = ({ page }: { readonly page: string | undefined }) => {
  const { path } = useWorkspace()
  const titles = useQuery(page === undefined ? null : "catalog/checkout-pages/titles", (signal) =>
    call("checkoutPages", "list", { urlParams: { limit: allPages } }, { signal })
  )
  if (page === undefined) return <span class="quiet">–</span>
  return (
    <Link href={path("/payment-links?tab=pages")}>
      {titles.data?.data.find(({ id }) => id === page)?.title ?? "Checkout page"}
    </Link>
  )
}
