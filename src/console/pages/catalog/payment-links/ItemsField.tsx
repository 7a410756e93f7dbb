import { AddButton, RemoveButton } from "../../../components/Button.tsx"
import { fieldsOf } from "../../../components/forms/Draft.ts"
import { Checkbox, CountField, FieldGroup } from "../../../components/forms/Field.tsx"
import type { Problems } from "../../../components/forms/Reader.ts"
import { PriceField } from "../prices/PriceField.tsx"
import { emptyItem, type ItemDraft } from "./ItemDraft.ts"

/** The API's limit for links and checkout pages. */
const mostItems = 20

export const ItemsField = (props: {
  /** The API's name for the array, such as `line_items`. */
  readonly prefix: string
  /** The API's name for an item's bounds, such as `adjustable_quantity`. */
  readonly adjustable: string
  readonly value: ReadonlyArray<ItemDraft>
  readonly onChange: (items: ReadonlyArray<ItemDraft>) => void
  readonly problems: Problems
}) => {
  const { adjustable, onChange, prefix, problems, value: items } = props
  return (
    <>
      {items.map((item, index) => {
        const change = (changed: (before: ItemDraft) => ItemDraft) => onChange(items.with(index, changed(item)))
        const field = fieldsOf(item, change, problems)
        const name = `${prefix}.${index}`
        return (
          <FieldGroup key={item.key} label={items.length === 1 ? "Item" : `Item ${index + 1}`}>
            <PriceField
              name={`${name}.price`}
              label="Price"
              chosen={item.price}
              onChange={(offer) => change((before) => ({ ...before, price: offer?.id ?? "" }))}
              problem={problems[`${name}.price`]}
            />
            <div class="field-row">
              <CountField
                {...field("quantity", `${name}.quantity`)}
                label={item.isAdjustable ? "Quantity at first" : "Quantity"}
              />
              {item.isAdjustable ? (
                <>
                  <CountField {...field("minimum", `${name}.${adjustable}.minimum`)} label="At least" />
                  <CountField {...field("maximum", `${name}.${adjustable}.maximum`)} label="At most" />
                </>
              ) : null}
            </div>
            <Checkbox {...field("isAdjustable", `${name}.adjusts`)} label="The payer chooses how many" />
            {items.length === 1 ? null : (
              <RemoveButton label={`Remove item ${index + 1}`} onClick={() => onChange(items.toSpliced(index, 1))} />
            )}
          </FieldGroup>
        )
      })}
      {items.length < mostItems ? (
        <AddButton onClick={() => onChange([...items, emptyItem(Math.max(...items.map(({ key }) => key)) + 1)])}>
          Add an item
        </AddButton>
      ) : null}
    </>
  )
}
