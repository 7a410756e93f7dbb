import { useState } from "preact/hooks"
import { useParams } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { textAt } from "../../api/Reading.ts"
import { OnOffBadge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { FormDialog } from "../../components/Dialog.tsx"
import { useDraft } from "../../components/Draft.ts"
import { Loaded } from "../../components/Loaded.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { Metadata } from "../payments/Metadata.tsx"
import { ActiveButton } from "./ActiveList.tsx"
import type { Product as ProductObject } from "./Offers.ts"
import { PricesSection } from "./PricesSection.tsx"
import { draftOf, type ProductDraft, productChanges } from "./ProductDraft.ts"
import { ProductImage } from "./ProductImage.tsx"
import { ProductInputs } from "./ProductInputs.tsx"

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
