import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Checkbox, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { invalidate, usePages, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { textAt } from "../payments/Reading.ts"
import { ActiveButton } from "./ActiveButton.tsx"
import type { Price, Product } from "./Offers.ts"
import { emptyPrice, type Problems, readPrice } from "./PriceDraft.ts"
import { PriceInputs } from "./PriceInputs.tsx"
import { isVolume, priceWords, tiersOf, trialWords } from "./PriceWords.ts"
import { useToastedSubmit } from "./ToastedSubmit.ts"
import { fallbackCurrency, useCurrencies } from "./UsedCurrencies.ts"

/** Changes a price's nickname and lookup key: the only fields that can change besides `active`. */
const EditPrice = ({ onClose, price }: { readonly price: Price; readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const before = { nickname: textAt(price, "nickname") ?? "", key: textAt(price, "lookup_key") ?? "" }
  const [nickname, setNickname] = useState(before.nickname)
  const [key, setKey] = useState(before.key)
  const [transfers, setTransfers] = useState(false)
  const hasNewKey = key.trim() !== before.key
  const { busy, error, submit } = useSubmit(
    () =>
      call("prices", "update", {
        path: { id: price.id },
        payload: {
          ...(nickname.trim() === before.nickname ? {} : { nickname: nickname.trim() === "" ? null : nickname.trim() }),
          ...(hasNewKey ? { lookup_key: key.trim() === "" ? null : key.trim() } : {}),
          ...(hasNewKey && key.trim() !== "" && transfers ? { transfer_lookup_key: true } : {})
        }
      }),
    () => {
      toast("Saved")
      invalidate(`${environment}/catalog/`)
      onClose()
    }
  )
  return (
    <Dialog title={`Rename ${priceWords(price)}`} open onClose={onClose}>
      <Form
        error={error}
        busy={busy}
        onSubmit={() => (hasNewKey || nickname.trim() !== before.nickname ? submit() : onClose())}
        labels={{ lookup_key: "Lookup key", nickname: "Nickname" }}
        submit="Save"
        onCancel={onClose}
      >
        <TextField
          name="nickname"
          label="Nickname"
          required={false}
          hint="A note of your own. Payers don't see it."
          maxLength={250}
          value={nickname}
          onChange={setNickname}
        />
        <TextField
          name="lookup_key"
          label="Lookup key"
          required={false}
          hint="Your integration's name for the price, such as basic."
          maxLength={200}
          monospace
          value={key}
          onChange={setKey}
        />
        {hasNewKey && key.trim() !== "" ? (
          <Checkbox
            name="transfer_lookup_key"
            label="Take the key from the price that has it"
            checked={transfers}
            onChange={setTransfers}
          />
        ) : null}
        <p class="quiet">What a price costs never changes. For another amount, add another price.</p>
      </Form>
    </Dialog>
  )
}

/** Adds a price of any kind to a product. */
const NewPrice = ({ onClose, product }: { readonly product: Product; readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const own = textAt(product, "default_price", "currency")
  const currencies = useCurrencies() ?? []
  const [draft, setDraft] = useState(() => emptyPrice(own ?? currencies[0] ?? fallbackCurrency))
  const [problems, setProblems] = useState<Problems>({})
  const { busy, error, submit } = useSubmit(
    async (idempotencyKey) => {
      const written = readPrice(draft)
      if (written.kind === "problems") throw new Error("A price with problems is not submitted")
      return call("prices", "create", { payload: { product: product.id, ...written.value } }, { idempotencyKey })
    },
    (price) => {
      toast(`${priceWords(price)} was added`)
      invalidate(`${environment}/catalog/`)
      onClose()
    }
  )
  return (
    <Dialog title="Add a price" open onClose={onClose}>
      <Form
        error={error}
        busy={busy}
        onSubmit={() => {
          const written = readPrice(draft)
          setProblems(written.kind === "problems" ? written.problems : {})
          if (written.kind === "ready") submit()
        }}
        labels={{ unit_amount: "Price", lookup_key: "Lookup key", tiers: "Tiers" }}
        submit="Add price"
        onCancel={onClose}
      >
        <PriceInputs
          draft={draft}
          onChange={setDraft}
          problems={problems}
          currencies={own === undefined ? currencies : [own, ...currencies]}
        />
      </Form>
    </Dialog>
  )
}

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
