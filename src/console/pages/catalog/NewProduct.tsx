import { useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { Button, ButtonLink } from "../../components/Button.tsx"
import { Checkbox } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Skeleton } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { emptyPrice, type PriceFields, type Problems, readPrice } from "./PriceDraft.ts"
import { PriceInputs } from "./PriceInputs.tsx"
import { emptyProduct, newProduct } from "./ProductDraft.ts"
import { ProductInputs } from "./ProductInputs.tsx"
import { fallbackCurrency, useCurrencies } from "./UsedCurrencies.ts"

/** Creates a product with its first price. */
export default function NewProduct() {
  const { can, path } = useWorkspace()
  const currencies = useCurrencies()
  return (
    <Page title="New product" back={{ href: path("/products"), label: "Products" }}>
      {!can("products:write") ? (
        <Notice tone="info">Your role does not create products. Ask an owner, an admin or a developer.</Notice>
      ) : currencies === undefined ? (
        <Skeleton />
      ) : (
        <NewProductForm currencies={currencies} />
      )}
    </Page>
  )
}

/** The fields that a price created with its product accepts. */
const defaultPrice = ({ currency, custom_unit_amount, recurring, unit_amount }: PriceFields) => ({
  currency,
  ...(unit_amount === undefined ? {} : { unit_amount }),
  ...(custom_unit_amount === undefined ? {} : { custom_unit_amount }),
  ...(recurring === undefined ? {} : { recurring })
})

const NewProductForm = ({ currencies }: { readonly currencies: ReadonlyArray<string> }) => {
  const { environment, path } = useWorkspace()
  const [, navigate] = useLocation()
  const [draft, setDraft] = useState(emptyProduct)
  const [hasPrice, setHasPrice] = useState(true)
  const [price, setPrice] = useState(() => emptyPrice(currencies[0] ?? fallbackCurrency))
  const [problems, setProblems] = useState<Problems>({})
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) => {
      const written = readPrice(price)
      const payload = {
        ...newProduct(draft),
        ...(hasPrice && written.kind === "ready" ? { default_price_data: defaultPrice(written.value) } : {})
      }
      return call("products", "create", { payload }, { idempotencyKey })
    },
    (product) => {
      toast(`${product.name ?? "The product"} was created`)
      invalidate(`${environment}/catalog/`)
      navigate(path(`/products/${product.id}`))
    }
  )
  return (
    <Form
      error={error}
      busy={busy}
      onSubmit={() => {
        const written = readPrice(price)
        const found = hasPrice && written.kind === "problems" ? written.problems : {}
        setProblems(found)
        if (Object.keys(found).length === 0) submit()
      }}
      labels={{ name: "Name", "default_price_data.unit_amount": "Price" }}
      actions={
        <>
          <ButtonLink href={path("/products")}>Cancel</ButtonLink>
          <Button kind="primary" type="submit" busy={busy}>
            Create product
          </Button>
        </>
      }
    >
      <Section title="Product">
        <ProductInputs draft={draft} onChange={setDraft} />
      </Section>
      <Section
        title="First price"
        lead="What a price costs never changes later; further prices can be added at any time."
      >
        <Checkbox name="has_price" label="Create it with a price" checked={hasPrice} onChange={setHasPrice} />
        {hasPrice ? (
          <PriceInputs
            isSimple
            prefix="default_price_data."
            draft={price}
            onChange={setPrice}
            problems={problems}
            currencies={currencies}
          />
        ) : null}
      </Section>
    </Form>
  )
}
