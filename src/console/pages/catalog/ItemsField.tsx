import { Button } from "../../components/Button.tsx"
import { Checkbox, FieldGroup } from "../../components/Field.tsx"
import { CountField } from "./CountField.tsx"
import { emptyItem, type ItemDraft } from "./ItemDraft.ts"
import type { Problems } from "./PriceDraft.ts"
import { PriceField } from "./PriceField.tsx"

export interface ItemsFieldProps {
  /** The API's name for the array, such as `line_items`. */
  readonly prefix: string
  /** The API's name for an item's bounds, such as `adjustable_quantity`. */
  readonly adjustable: string
  readonly items: ReadonlyArray<ItemDraft>
  readonly onChange: (items: ReadonlyArray<ItemDraft>) => void
  readonly problems: Problems
}

/** The API's limit for links and checkout pages. */
const mostItems = 20

/** Edits the items for sale and their quantities: fixed, or chosen by the payer within bounds. */
export const ItemsField = ({ adjustable, items, onChange, prefix, problems }: ItemsFieldProps) => {
  const change = (index: number, changed: Partial<ItemDraft>) =>
    onChange(items.map((item, at) => (at === index ? { ...item, ...changed } : item)))
  const add = () => onChange([...items, emptyItem(Math.max(...items.map(({ key }) => key)) + 1)])
  return (
    <>
      {items.map((item, index) => {
        const name = `${prefix}.${index}`
        const bounds = `${name}.${adjustable}`
        return (
          <FieldGroup key={item.key} label={items.length === 1 ? "Item" : `Item ${index + 1}`}>
            <PriceField
              name={`${name}.price`}
              label="Price"
              chosen={item.price}
              onChange={(offer) => change(index, { price: offer?.id ?? "" })}
              problem={problems[`${name}.price`]}
            />
            <div class="field-row">
              <CountField
                name={`${name}.quantity`}
                label={item.isAdjustable ? "Quantity at first" : "Quantity"}
                value={item.quantity}
                onChange={(quantity) => change(index, { quantity })}
                problem={problems[`${name}.quantity`]}
              />
              {item.isAdjustable ? (
                <>
                  <CountField
                    name={`${bounds}.minimum`}
                    label="At least"
                    value={item.minimum}
                    onChange={(minimum) => change(index, { minimum })}
                    problem={problems[`${bounds}.minimum`]}
                  />
                  <CountField
                    name={`${bounds}.maximum`}
                    label="At most"
                    value={item.maximum}
                    onChange={(maximum) => change(index, { maximum })}
                    problem={problems[`${bounds}.maximum`]}
                  />
                </>
              ) : null}
            </div>
            <Checkbox
              name={`${name}.adjusts`}
              label="The payer chooses how many"
              checked={item.isAdjustable}
              onChange={(isAdjustable) => change(index, { isAdjustable })}
            />
            {items.length === 1 ? null : (
              <p>
                <Button
                  small
                  kind="quiet"
                  label={`Remove item ${index + 1}`}
                  onClick={() => onChange(items.filter((_, at) => at !== index))}
                >
                  Remove
                </Button>
              </p>
            )}
          </FieldGroup>
        )
      })}
      {items.length < mostItems ? (
        <p>
          <Button small onClick={add}>
            Add an item
          </Button>
        </p>
      ) : null}
    </>
  )
}
