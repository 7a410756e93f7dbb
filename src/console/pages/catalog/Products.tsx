import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { itemsAt } from "../payments/Reading.ts"
import { ActiveFilter, useActiveFilter } from "./ActiveFilter.tsx"
import type { Product } from "./Offers.ts"
import { priceWords } from "./PriceWords.ts"
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
  const { can, environment, path } = useWorkspace()
  const { query, shown } = useActiveFilter()
  const list = usePages<Product>(
    `${environment}/catalog/products?${shown}`,
    (after, signal) =>
      call(
        "products",
        "list",
        { urlParams: { limit: 25, ...query, ...(after === undefined ? {} : { starting_after: after }) } },
        { signal }
      ),
    ({ id }) => id
  )
  const create = can("products:write") ? (
    <ButtonLink kind="primary" href={path("/products/new")}>
      New product
    </ButtonLink>
  ) : undefined
  return (
    <Page title="Products" actions={create}>
      <ActiveFilter active="On sale" inactive="Off sale" />
      <Pages
        list={list}
        empty={
          shown === "" ? (
            <Empty title="No products yet" action={create}>
              A product has a name, images and prices. Payers buy it by a checkout session, a payment link or a checkout
              page.
            </Empty>
          ) : (
            <Empty title={shown === "active" ? "Nothing is on sale" : "Nothing is off sale"}>
              Clear the filter to see all products.
            </Empty>
          )
        }
      >
        {(products) => (
          <Table
            caption="Products, newest first"
            head={["Product", "Price", "Status", "Id", "Created"]}
            rows={products.map((product) => ({
              key: product.id,
              href: path(`/products/${product.id}`),
              cells: [
                <NameCell key="name" product={product} />,
                product.default_price === null || product.default_price === undefined ? (
                  <span key="price" class="quiet">
                    No default price
                  </span>
                ) : (
                  priceWords(product.default_price)
                ),
                product.active === true ? (
                  <Badge key="active" tone="ok">
                    On sale
                  </Badge>
                ) : (
                  <Badge key="active">Off sale</Badge>
                ),
                <Id key="id" value={product.id} />,
                <Time key="created" at={product.created} />
              ]
            }))}
          />
        )}
      </Pages>
    </Page>
  )
}
