/** The labels of a destination's fields in messages. */
export const fieldLabels = {
  name: "Name",
  url: "URL",
  events: "Event types",
  "filters.currencies": "Currencies",
  "filters.amountMin": "Least amount",
  "filters.amountMax": "Greatest amount",
  "filters.products": "Products",
  "filters.prices": "Prices",
  "filters.metadata": "Metadata"
} as const
