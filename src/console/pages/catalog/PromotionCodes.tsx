import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Empty } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { ActiveButton, ActiveList } from "./ActiveList.tsx"
import { discountWords, durationWords, productsOf, redemptionWords, unusableBecause } from "./DiscountWords.ts"
import { NewPromotionCode } from "./NewPromotionCode.tsx"
import { useCurrencies } from "./UsedCurrencies.ts"

type PromotionCode = AnswerOf<"promotionCodes", "get">

export default function PromotionCodes() {
  const { can } = useWorkspace()
  const [isCreating, setCreating] = useState(false)
  const currencies = useCurrencies()
  const mayWrite = can("coupons:write", "promotionCodes.create")
  const create = mayWrite ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      New promotion code
    </Button>
  ) : undefined
  return (
    <Page title="Promotion codes" actions={create}>
      <ActiveList<PromotionCode>
        kind="promotion-codes"
        load={(urlParams, signal) => call("promotionCodes", "list", { urlParams }, { signal })}
        words={["Active", "Inactive"]}
        nothing={["No active codes", "No inactive codes"]}
        noun="codes"
        empty={
          <Empty title="No promotion codes yet" action={create}>
            Payers enter a code at checkout and pay less, if the session, link or page allows it.
          </Empty>
        }
        caption="Promotion codes, newest first"
        columns={[
          { head: "Code", cell: ({ code, id }) => <Id full value={code ?? id} /> },
          { head: "Discount", cell: (code) => <DiscountCell code={code} /> },
          { head: "Used", cell: redemptionWords },
          {
            head: "Expires",
            cell: ({ expires_at: at }) =>
              at === null || at === undefined ? <span class="quiet">Never</span> : <Time at={at} />
          },
          { head: "Status", cell: (code) => <StatusCell code={code} /> },
          mayWrite && { head: "Actions", hidden: true, cell: (code) => <Actions code={code} /> }
        ]}
      />
      {isCreating && <NewPromotionCode currencies={currencies ?? []} onClose={() => setCreating(false)} />}
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

const reasonWords = { expired: "Expired", "used up": "Used up", off: "Inactive" } as const

const StatusCell = ({ code }: { readonly code: PromotionCode }) => {
  const reason = unusableBecause(code, Date.now() / 1000)
  return reason === undefined ? <Badge tone="ok">Active</Badge> : <Badge>{reasonWords[reason]}</Badge>
}

const Actions = ({ code }: { readonly code: PromotionCode }) => {
  const reason = unusableBecause(code, Date.now() / 1000)
  // The provider never reactivates a code that has expired or was used up
  if (reason === "expired" || reason === "used up") return null
  return (
    <ActiveButton
      isActive={code.active === true}
      words={["Deactivate", "Activate"]}
      of={code.code ?? code.id}
      set={(active) => call("promotionCodes", "update", { path: { id: code.id }, payload: { active } })}
    />
  )
}
