import { Tabs } from "../../components/Tabs.tsx"
import { useWorkspace } from "../../state/Session.ts"

/** The parts of the catalog. */
export const CatalogTabs = ({ current }: { readonly current: "products" | "promotion-codes" | "payment-links" }) => {
  const { path } = useWorkspace()
  return (
    <Tabs
      label="Catalog"
      current={current}
      items={[
        { id: "products", label: "Products", href: path("/products") },
        { id: "promotion-codes", label: "Promotion codes", href: path("/promotion-codes") },
        { id: "payment-links", label: "Payment links", href: path("/payment-links") }
      ]}
    />
  )
}
