import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { invalidate, usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { textAt } from "../payments/Reading.ts"
import { ActiveButton } from "./ActiveButton.tsx"
import { EditPrice } from "./EditPrice.tsx"
import { NewPrice } from "./NewPrice.tsx"
import type { Price, Product } from "./Offers.ts"
import { isVolume, priceWords, tiersOf, trialWords } from "./PriceWords.ts"
import { useToastedSubmit } from "./ToastedSubmit.ts"

export const PricesSection = ({ product }: { readonly product: Product }) => {
  const { can, environment } = useWorkspace()
  const [isAdding, setAdding] = useState(false)
  const [edited, setEdited] = useState<Price | undefined>(undefined)
  const list = usePages<Price>(
    `${environment}/catalog/prices/${product.id}`,
    (after, signal) =>
      call(
        "prices",
        "list",
        { urlParams: { product: product.id, limit: 25, ...(after === undefined ? {} : { starting_after: after }) } },
        { signal }
      ),
    ({ id }) => id
  )
  const mayWrite = can("products:write")
  const defaultId = textAt(product, "default_price", "id")
  const add = mayWrite ? <Button onClick={() => setAdding(true)}>Add a price</Button> : undefined
  return (
    <Section title="Prices" actions={add}>
      <Pages
        list={list}
        empty={
          <Empty title="No price yet" action={add}>
            A product needs a price to be sold.
          </Empty>
        }
      >
        {(prices) => (
          <Table
            caption="Prices, newest first"
            head={["Price", "Status", "Id", ...(mayWrite ? [{ label: "Actions", hidden: true }] : [])]}
            rows={prices.map((price) => ({
              key: price.id,
              cells: [
                <PriceCell key="words" price={price} />,
                <span key="status" class="badges">
                  {price.active === true ? <Badge tone="ok">Active</Badge> : <Badge>Inactive</Badge>}
                  {price.id === defaultId ? <Badge tone="info">Default</Badge> : null}
                </span>,
                <Id key="id" value={price.id} />,
                ...(mayWrite
                  ? [
                      <PriceActions
                        key="actions"
                        price={price}
                        product={product}
                        isDefault={price.id === defaultId}
                        onEdit={() => setEdited(price)}
                      />
                    ]
                  : [])
              ]
            }))}
          />
        )}
      </Pages>
      {isAdding ? <NewPrice product={product} onClose={() => setAdding(false)} /> : null}
      {edited === undefined ? null : <EditPrice price={edited} onClose={() => setEdited(undefined)} />}
    </Section>
  )
}

const PriceCell = ({ price }: { readonly price: Price }) => {
  const tiers = tiersOf(price)
  const trial = trialWords(price)
  const nickname = textAt(price, "nickname")
  const key = textAt(price, "lookup_key")
  return (
    <>
      <span class="price-words">{priceWords(price)}</span>
      {trial === undefined ? null : <span class="quiet">, {trial}</span>}
      {nickname === undefined && key === undefined ? null : (
        <span class="price-name">
          {nickname === undefined ? null : <span>{nickname}</span>}
          {key === undefined ? null : <code>{key}</code>}
        </span>
      )}
      {tiers.length === 0 ? null : (
        <dl class="tiers">
          {tiers.map(({ costs, units }) => (
            <div key={units}>
              <dt>{units}</dt>
              <dd>
                {costs}
                {isVolume(price) ? ", for all units" : ""}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </>
  )
}

interface PriceActionsProps {
  readonly price: Price
  readonly product: Product
  readonly isDefault: boolean
  readonly onEdit: () => void
}

const PriceActions = ({ isDefault, onEdit, price, product }: PriceActionsProps) => {
  const { environment } = useWorkspace()
  const words = priceWords(price)
  const reread = () => invalidate(`${environment}/catalog/`)
  return (
    <span class="row-actions">
      <Button small kind="quiet" label={`Rename ${words}`} onClick={onEdit}>
        Rename
      </Button>
      {isDefault || price.active !== true ? null : <DefaultButton price={price} product={product} onDone={reread} />}
      {/* The provider keeps a product's default price active: another one must become the default first */}
      {isDefault && price.active === true ? null : (
        <ActiveButton
          isActive={price.active === true}
          words={["Deactivate", "Activate"]}
          of={words}
          set={(active) => call("prices", "update", { path: { id: price.id }, payload: { active } })}
          onDone={reread}
        />
      )}
    </span>
  )
}

interface DefaultButtonProps {
  readonly price: Price
  readonly product: Product
  readonly onDone: () => void
}

const DefaultButton = ({ onDone, price, product }: DefaultButtonProps) => {
  const { busy, submit } = useToastedSubmit(
    (idempotencyKey) =>
      call(
        "products",
        "update",
        { path: { id: product.id }, payload: { default_price: price.id } },
        { idempotencyKey }
      ),
    () => {
      toast(`${priceWords(price)} is the default price now`)
      onDone()
    }
  )
  return (
    <Button small kind="quiet" busy={busy} label={`Make default: ${priceWords(price)}`} onClick={submit}>
      Make default
    </Button>
  )
}
