import { useLocation } from "wouter-preact"
import { call } from "../../../api/Call.ts"
import { Button, ButtonLink } from "../../../components/Button.tsx"
import { useDraft } from "../../../components/forms/Draft.ts"
import { Checkbox } from "../../../components/forms/Field.tsx"
import { Form } from "../../../components/forms/Form.tsx"
import { filled } from "../../../components/forms/Reader.ts"
import { Skeleton } from "../../../components/Loaded.tsx"
import { Notice } from "../../../components/Notice.tsx"
import { Page, Section } from "../../../components/Page.tsx"
import { useWorkspace } from "../../../state/Session.ts"
import { toast } from "../../../state/Toasts.ts"
import { fallbackCurrency } from "../Currencies.ts"
import { emptyPrice, type PriceDraft, type PriceFields, readPrice } from "../prices/PriceDraft.ts"
import { PriceInputs } from "../prices/PriceInputs.tsx"
import { useCurrencies } from "../UsedCurrencies.ts"
import { emptyProduct, newProduct, type ProductDraft } from "./ProductDraft.ts"
import { ProductInputs } from "./ProductInputs.tsx"

export default function NewProduct() {
  const { can, path } = useWorkspace()
  const currencies = useCurrencies()
  return (
    <Page title="New product" back={{ href: path("/products"), label: "Products" }}>
      {!can("products:write", "products.create") ? (
        <Notice tone="info">Your role does not create products. Ask an owner, an admin or a developer.</Notice>
      ) : currencies === undefined ? (
        <Skeleton />
      ) : (
        <NewProductForm currencies={currencies} />
      )}
    </Page>
  )
}

const defaultPrice = ({ currency, custom_unit_amount, recurring, unit_amount }: PriceFields) => ({
  currency,
  ...filled({ unit_amount, custom_unit_amount, recurring })
})

interface NewProductDraft {
  readonly product: ProductDraft
  readonly price: PriceDraft
  readonly hasPrice: boolean
}

const readNewProduct = ({ hasPrice, price, product }: NewProductDraft) => {
  const written = hasPrice ? readPrice(price) : undefined
  if (written?.kind === "problems") return written
  const priced = written === undefined ? {} : { default_price_data: defaultPrice(written.value) }
  return { kind: "ready" as const, value: { ...newProduct(product), ...priced } }
}

const NewProductForm = ({ currencies }: { readonly currencies: ReadonlyArray<string> }) => {
  const { path } = useWorkspace()
  const [, navigate] = useLocation()
  const { draft, field, form, problems, setDraft } = useDraft({
    initial: () => ({ product: emptyProduct, price: emptyPrice(currencies[0] ?? fallbackCurrency), hasPrice: true }),
    read: readNewProduct,
    send: (payload, idempotencyKey) => call("products", "create", { payload }, { idempotencyKey }),
    onDone: (product) => {
      toast(`${product.name ?? "The product"} was created`)
      navigate(path(`/products/${product.id}`))
    }
  })
  return (
    <Form
      {...form}
      actions={
        <>
          <ButtonLink href={path("/products")}>Cancel</ButtonLink>
          <Button kind="primary" type="submit" busy={form.submission.busy}>
            Create product
          </Button>
        </>
      }
    >
      <Section title="Product">
        <ProductInputs
          draft={draft.product}
          setDraft={(change) => setDraft((before) => ({ ...before, product: change(before.product) }))}
        />
      </Section>
      <Section title="First price" lead="A price's amount never changes; you can add further prices at any time.">
        <Checkbox {...field("hasPrice", "has_price")} label="Create it with a price" />
        {draft.hasPrice ? (
          <PriceInputs
            isSimple
            prefix="default_price_data."
            price={{
              draft: draft.price,
              setDraft: (change) => setDraft((before) => ({ ...before, price: change(before.price) })),
              problems
            }}
            currencies={currencies}
          />
        ) : null}
      </Section>
    </Form>
  )
}
