import { useState } from "preact/hooks"
import { useParams } from "wouter-preact"
import { call } from "../../../api/Call.ts"
import { textAt } from "../../../api/Reading.ts"
import { Badge, OnOffBadge } from "../../../components/Badge.tsx"
import { Button } from "../../../components/Button.tsx"
import { Id } from "../../../components/Copy.tsx"
import { FormDialog } from "../../../components/Dialog.tsx"
import { useDraft } from "../../../components/forms/Draft.ts"
import { changedFields } from "../../../components/forms/Reader.ts"
import { Empty, Loaded, PagedTable } from "../../../components/Loaded.tsx"
import { Facts, Page, Section } from "../../../components/Page.tsx"
import { Time } from "../../../components/Time.tsx"
import { usePages, useQuery } from "../../../state/Query.ts"
import { useWorkspace } from "../../../state/Session.ts"
import { toast } from "../../../state/Toasts.ts"
import { Metadata } from "../../payments/Metadata.tsx"
import { ActiveButton, useToastedSubmit } from "../ActiveList.tsx"
import { fallbackCurrency } from "../Currencies.ts"
import type { Price, Product as ProductObject } from "../Offers.ts"
import { emptyPrice, readPrice } from "../prices/PriceDraft.ts"
import { NameInputs, PriceInputs } from "../prices/PriceInputs.tsx"
import { isVolume, priceWords, tiersOf, trialWords } from "../prices/PriceWords.ts"
import { useCurrencies } from "../UsedCurrencies.ts"
import { draftOf, type ProductDraft, productChanges } from "./ProductDraft.ts"
import { ProductImage } from "./ProductImage.tsx"
import { ProductInputs } from "./ProductInputs.tsx"

/** Changes a price's nickname and lookup key: the only fields that can change besides `active`. */
const EditPrice = ({ onClose, price }: { readonly price: Price; readonly onClose: () => void }) => {
  const before = { nickname: textAt(price, "nickname") ?? "", lookupKey: textAt(price, "lookup_key") ?? "" }
  const hasNewKey = (key: string) => key.trim() !== before.lookupKey && key.trim() !== ""
  const { draft, field, form } = useDraft({
    initial: { ...before, transfersKey: false },
    read: ({ lookupKey, nickname, transfersKey }) => {
      const changed = changedFields(before, { nickname: nickname.trim(), lookupKey: lookupKey.trim() })
      const value = {
        ...(changed.nickname === undefined ? {} : { nickname: changed.nickname || null }),
        ...(changed.lookupKey === undefined ? {} : { lookup_key: changed.lookupKey || null }),
        ...(hasNewKey(lookupKey) && transfersKey ? { transfer_lookup_key: true } : {})
      }
      return { kind: "ready" as const, value }
    },
    send: (payload) => call("prices", "update", { path: { id: price.id }, payload }),
    onClose,
    onDone: () => toast("Saved")
  })
  return (
    <FormDialog {...form} title={`Rename ${priceWords(price)}`} submit="Save" onClose={onClose}>
      <NameInputs
        field={field}
        keyHint="Your integration's name for the price, such as basic."
        hasNewKey={hasNewKey(draft.lookupKey)}
      />
      <p class="quiet">A price's amount never changes. To sell at another amount, add another price.</p>
    </FormDialog>
  )
}

const NewPrice = ({ onClose, product }: { readonly product: ProductObject; readonly onClose: () => void }) => {
  const own = textAt(product, "default_price", "currency")
  const currencies = useCurrencies() ?? []
  const { form, ...price } = useDraft({
    initial: () => emptyPrice(own ?? currencies[0] ?? fallbackCurrency),
    read: readPrice,
    send: (value, idempotencyKey) =>
      call("prices", "create", { payload: { product: product.id, ...value } }, { idempotencyKey }),
    onClose,
    onDone: (created) => toast(`${priceWords(created)} was added`)
  })
  return (
    <FormDialog {...form} title="Add a price" submit="Add price" onClose={onClose}>
      <PriceInputs price={price} currencies={own === undefined ? currencies : [own, ...currencies]} />
    </FormDialog>
  )
}

const PricesSection = ({ product }: { readonly product: ProductObject }) => {
  const { can } = useWorkspace()
  const [isAdding, setAdding] = useState(false)
  const [edited, setEdited] = useState<Price | undefined>(undefined)
  const list = usePages<Price>(`catalog/prices/${product.id}`, (page, signal) =>
    call("prices", "list", { urlParams: { product: product.id, ...page } }, { signal })
  )
  const mayWrite = can("products:write", "prices.create")
  const defaultId = textAt(product, "default_price", "id")
  const add = mayWrite ? <Button onClick={() => setAdding(true)}>Add a price</Button> : undefined
  return (
    <Section title="Prices" actions={add}>
      <PagedTable
        list={list}
        empty={
          <Empty title="No price yet" action={add}>
            A product needs a price to be sold.
          </Empty>
        }
        caption="Prices, newest first"
        columns={[
          { head: "Price", cell: (price) => <PriceCell price={price} /> },
          {
            head: "Status",
            cell: ({ active, id }) => (
              <span class="badges">
                <OnOffBadge isOn={active === true} words={["Active", "Inactive"]} />
                {id === defaultId ? <Badge tone="info">Default</Badge> : null}
              </span>
            )
          },
          { head: "Id", cell: ({ id }) => <Id value={id} /> },
          mayWrite && {
            head: "Actions",
            hidden: true,
            cell: (price) => (
              <PriceActions
                price={price}
                product={product}
                isDefault={price.id === defaultId}
                onEdit={() => setEdited(price)}
              />
            )
          }
        ]}
      />
      {isAdding && <NewPrice product={product} onClose={() => setAdding(false)} />}
      {edited && <EditPrice price={edited} onClose={() => setEdited(undefined)} />}
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
  readonly product: ProductObject
  readonly isDefault: boolean
  readonly onEdit: () => void
}

const PriceActions = ({ isDefault, onEdit, price, product }: PriceActionsProps) => {
  const words = priceWords(price)
  const { busy, submit } = useToastedSubmit(
    (idempotencyKey) =>
      call(
        "products",
        "update",
        { path: { id: product.id }, payload: { default_price: price.id } },
        { idempotencyKey }
      ),
    () => toast(`${words} is the default price now`)
  )
  return (
    <span class="row-actions">
      <Button small kind="quiet" label={`Rename ${words}`} onClick={onEdit}>
        Rename
      </Button>
      {isDefault || price.active !== true ? null : (
        <Button small kind="quiet" busy={busy} label={`Make default: ${words}`} onClick={submit}>
          Make default
        </Button>
      )}
      {/* The provider keeps a product's default price active: another one must become the default first */}
      {isDefault && price.active === true ? null : (
        <ActiveButton
          isActive={price.active === true}
          words={["Deactivate", "Activate"]}
          of={words}
          set={(active) => call("prices", "update", { path: { id: price.id }, payload: { active } })}
        />
      )}
    </span>
  )
}

const EditProduct = ({ onClose, product }: { readonly product: ProductObject; readonly onClose: () => void }) => {
  const { draft, form, setDraft } = useDraft({
    initial: () => draftOf(product),
    read: (written: ProductDraft) => ({ kind: "ready" as const, value: productChanges(product, written) }),
    send: (payload) => call("products", "update", { path: { id: product.id }, payload }),
    onClose,
    onDone: () => toast("Saved")
  })
  return (
    <FormDialog {...form} title="Edit product" submit="Save" onClose={onClose}>
      <ProductInputs draft={draft} setDraft={setDraft} />
    </FormDialog>
  )
}

export default function Product() {
  const { can, path } = useWorkspace()
  const { id = "" } = useParams<{ id: string }>()
  const [isEditing, setEditing] = useState(false)
  const query = useQuery(`catalog/product/${id}`, (signal) => call("products", "get", { path: { id } }, { signal }))
  const product = query.data
  return (
    <Page
      title={product?.name ?? "Product"}
      back={{ href: path("/products"), label: "Products" }}
      actions={
        product !== undefined &&
        can("products:write", "products.update") && (
          <>
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <ActiveButton
              isLarge
              isActive={product.active === true}
              words={["Take off sale", "Put on sale"]}
              of={product.name ?? product.id}
              set={(active) => call("products", "update", { path: { id }, payload: { active } })}
            />
          </>
        )
      }
    >
      <Loaded query={query}>
        {(found) => (
          <>
            <ProductSection product={found} />
            <PricesSection product={found} />
            {isEditing ? <EditProduct product={found} onClose={() => setEditing(false)} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

const ProductSection = ({ product }: { readonly product: ProductObject }) => {
  const { description, images, unitLabel, url } = draftOf(product)
  return (
    <Section title="Product">
      {images.length === 0 ? null : (
        <ul class="images">
          {images.map((image, index) => (
            <li key={image}>
              <ProductImage url={image} alt={`Image ${index + 1} of ${product.name ?? "the product"}`} />
            </li>
          ))}
        </ul>
      )}
      {description === "" ? null : <p class="product-description">{description}</p>}
      <Facts
        items={[
          ["Status", <OnOffBadge key="active" isOn={product.active === true} words={["On sale", "Off sale"]} />],
          ["Product", <Id key="id" value={product.id} full />],
          ["Unit", unitLabel === "" ? undefined : unitLabel],
          ["On the bank statement", textAt(product, "statement_descriptor")],
          ["Page about it", /^https?:/.test(url) && <a href={url}>{url}</a>],
          ["Created", <Time key="created" at={product.created} />],
          ["Changed", <Time key="updated" at={product.updated} />]
        ]}
      />
      <Metadata of={product} />
    </Section>
  )
}
