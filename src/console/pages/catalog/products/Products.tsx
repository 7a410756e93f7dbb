import { call } from "../../../api/Call.ts"
import { itemsAt } from "../../../api/Reading.ts"
import { OnOffBadge } from "../../../components/Badge.tsx"
import { ButtonLink } from "../../../components/Button.tsx"
import { Id } from "../../../components/Copy.tsx"
import { Empty } from "../../../components/Loaded.tsx"
import { Page } from "../../../components/Page.tsx"
import { Time } from "../../../components/Time.tsx"
import { useWorkspace } from "../../../state/Session.ts"
import { ActiveList } from "../ActiveList.tsx"
import type { Product } from "../Offers.ts"
import { priceWords } from "../prices/PriceWords.ts"
import { NoImage, ProductImage } from "./ProductImage.tsx"

const NameCell = ({ product }: { readonly product: Product }) => {
  const [image] = itemsAt(product, "images")
  return (
    <span class="product-name">
      {typeof image === "string" ? <ProductImage url={image} alt="" size="small" /> : <NoImage size="small" />}
      <span>{product.name ?? product.id}</span>
    </span>
  )
}

export default function Products() {
  const { can, path } = useWorkspace()
  const create = can("products:write", "products.create") ? (
    <ButtonLink kind="primary" href={path("/products/new")}>
      New product
    </ButtonLink>
  ) : undefined
  return (
    <Page title="Products" actions={create}>
      <ActiveList<Product>
        kind="products"
        load={(urlParams, signal) => call("products", "list", { urlParams }, { signal })}
        words={["On sale", "Off sale"]}
        nothing={["Nothing is on sale", "Nothing is off sale"]}
        noun="products"
        empty={
          <Empty title="No products yet" action={create}>
            A product has a name, images and prices. Payers buy it through a checkout session, a payment link or a
            checkout page.
          </Empty>
        }
        caption="Products, newest first"
        href={({ id }) => path(`/products/${id}`)}
        columns={[
          { head: "Product", cell: (product) => <NameCell product={product} /> },
          {
            head: "Price",
            cell: ({ default_price: price }) =>
              price === null || price === undefined ? <span class="quiet">No default price</span> : priceWords(price)
          },
          {
            head: "Status",
            cell: ({ active }) => <OnOffBadge isOn={active === true} words={["On sale", "Off sale"]} />
          },
          { head: "Id", cell: ({ id }) => <Id value={id} /> },
          { head: "Created", cell: ({ created }) => <Time at={created} /> }
        ]}
      />
    </Page>
  )
}
