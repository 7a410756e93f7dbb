import { useState } from "preact/hooks"
import { useParams } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Form } from "../../components/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useQuery, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { Metadata } from "../payments/Metadata.tsx"
import { textAt } from "../payments/Reading.ts"
import { ActiveButton } from "./ActiveButton.tsx"
import type { Product as ProductObject } from "./Offers.ts"
import { PricesSection } from "./PricesSection.tsx"
import { draftOf, productChanges } from "./ProductDraft.ts"
import { ProductImage } from "./ProductImage.tsx"
import { ProductInputs } from "./ProductInputs.tsx"

/** Edits a product. Only changed fields are sent, so that someone else's concurrent change is kept. */
const EditProduct = ({ onClose, product }: { readonly product: ProductObject; readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const [draft, setDraft] = useState(() => draftOf(product))
  const { busy, error, submit } = useSubmit(
    () => call("products", "update", { path: { id: product.id }, payload: productChanges(product, draft) }),
    () => {
      toast("Saved")
      invalidate(`${environment}/catalog/`)
      onClose()
    }
  )
  const isChanged = Object.keys(productChanges(product, draft)).length > 0
  return (
    <Dialog title="Edit product" open onClose={onClose}>
      <Form
        error={error}
        busy={busy}
        onSubmit={() => (isChanged ? submit() : onClose())}
        labels={{ name: "Name", description: "Description", unit_label: "Unit", url: "Page about it" }}
        submit="Save"
        onCancel={onClose}
      >
        <ProductInputs draft={draft} onChange={setDraft} />
      </Form>
    </Dialog>
  )
}

export default function Product() {
  const { can, environment, path } = useWorkspace()
  const { id = "" } = useParams<{ id: string }>()
  const [isEditing, setEditing] = useState(false)
  const query = useQuery(`${environment}/catalog/product/${id}`, (signal) =>
    call("products", "get", { path: { id } }, { signal })
  )
  const product = query.data
  return (
    <Page
      title={product?.name ?? "Product"}
      back={{ href: path("/products"), label: "Products" }}
      actions={
        product !== undefined &&
        can("products:write") && (
          <>
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <ActiveButton
              isLarge
              isActive={product.active === true}
              words={["Take off sale", "Put on sale"]}
              of={product.name ?? product.id}
              set={(active) => call("products", "update", { path: { id }, payload: { active } })}
              onDone={() => invalidate(`${environment}/catalog/`)}
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
          [
            "Status",
            product.active === true ? (
              <Badge key="active" tone="ok">
                On sale
              </Badge>
            ) : (
              <Badge key="active">Off sale</Badge>
            )
          ],
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
