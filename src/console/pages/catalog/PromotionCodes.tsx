import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { ActiveButton } from "./ActiveButton.tsx"
import { ActiveFilter, useActiveFilter } from "./ActiveFilter.tsx"
import { discountWords, durationWords, productsOf, redemptionWords, unusableBecause } from "./DiscountWords.ts"
import { NewPromotionCode } from "./NewPromotionCode.tsx"
import { useCurrencies } from "./UsedCurrencies.ts"

type PromotionCode = AnswerOf<"promotionCodes", "get">

export default function PromotionCodes() {
  const { can, environment } = useWorkspace()
  const { query, shown } = useActiveFilter()
  const [isCreating, setCreating] = useState(false)
  const currencies = useCurrencies()
  const mayWrite = can("coupons:write")
  const list = usePages<PromotionCode>(
    `${environment}/catalog/promotion-codes?${shown}`,
    (after, signal) =>
      call(
        "promotionCodes",
        "list",
        { urlParams: { limit: 25, ...query, ...(after === undefined ? {} : { starting_after: after }) } },
        { signal }
      ),
    ({ id }) => id
  )
  const create = mayWrite ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      New promotion code
    </Button>
  ) : undefined
  return (
    <Page title="Promotion codes" actions={create}>
      <ActiveFilter active="Active" inactive="Inactive" />
      <Pages
        list={list}
        empty={
          shown === "" ? (
            <Empty title="No promotion codes yet" action={create}>
              Payers enter a code at checkout and pay less, if the session, link or page allows it.
            </Empty>
          ) : (
            <Empty title={`No ${shown} codes`}>Clear the filter to see all codes.</Empty>
          )
        }
      >
        {(codes) => (
          <Table
            caption="Promotion codes, newest first"
            head={[
              "Code",
              "Discount",
              "Used",
              "Expires",
              "Status",
              ...(mayWrite ? [{ label: "Actions", hidden: true }] : [])
            ]}
            rows={codes.map((code) => ({
              key: code.id,
              cells: [
                <Id key="code" full value={code.code ?? code.id} />,
                <DiscountCell key="discount" code={code} />,
                redemptionWords(code),
                code.expires_at === null || code.expires_at === undefined ? (
                  <span key="expires" class="quiet">
                    Never
                  </span>
                ) : (
                  <Time key="expires" at={code.expires_at} />
                ),
                <StatusCell key="status" code={code} />,
                ...(mayWrite ? [<Actions key="actions" code={code} />] : [])
              ]
            }))}
          />
        )}
      </Pages>
      {isCreating ? <NewPromotionCode currencies={currencies ?? []} onClose={() => setCreating(false)} /> : null}
    </Page>
  )
}

const DiscountCell = ({ code }: { readonly code: PromotionCode }) => {
  const products = productsOf(code.coupon)
  return (
    <>
      {discountWords(code.coupon)} <span class="quiet">{durationWords(code.coupon)}</span>
      {products.length === 0 ? null : (
        <span class="quiet">
          , on {products.length} {products.length === 1 ? "product" : "products"}
        </span>
      )}
    </>
  )
}

const StatusCell = ({ code }: { readonly code: PromotionCode }) => {
  switch (unusableBecause(code, Date.now() / 1000)) {
    case "expired":
      return <Badge>Expired</Badge>
    case "used up":
      return <Badge>Used up</Badge>
    case "off":
      return <Badge>Inactive</Badge>
    default:
      return <Badge tone="ok">Active</Badge>
  }
}

const Actions = ({ code }: { readonly code: PromotionCode }) => {
  const { environment } = useWorkspace()
  const reason = unusableBecause(code, Date.now() / 1000)
  // The provider never reactivates a code that has expired or was used up
  if (reason === "expired" || reason === "used up") return null
  return (
    <ActiveButton
      isActive={code.active === true}
      words={["Deactivate", "Activate"]}
      of={code.code ?? code.id}
      set={(active) => call("promotionCodes", "update", { path: { id: code.id }, payload: { active } })}
      onDone={() => invalidate(`${environment}/catalog/promotion-codes`)}
    />
  )
}
