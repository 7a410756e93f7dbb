import type { StateUpdater } from "preact/hooks"
import { TextArea, TextField } from "../../components/Field.tsx"
import { ImagesField } from "./ImagesField.tsx"
import type { ProductDraft } from "./ProductDraft.ts"

export interface ProductInputsProps {
  readonly draft: ProductDraft
  readonly onChange: (change: StateUpdater<ProductDraft>) => void
}

/** The API's limit. */
const mostImages = 8

/** The inputs for what payers see of a product. */
export const ProductInputs = ({ draft, onChange }: ProductInputsProps) => {
  const set = (changed: Partial<ProductDraft>) => onChange((before) => ({ ...before, ...changed }))
  return (
    <>
      <TextField
        name="name"
        label="Name"
        required
        maxLength={250}
        value={draft.name}
        onChange={(name) => set({ name })}
      />
      <TextArea
        name="description"
        label="Description"
        required={false}
        hint="What payers read beneath the name."
        rows={3}
        maxLength={40_000}
        value={draft.description}
        onChange={(description) => set({ description })}
      />
      <ImagesField
        name="images"
        label="Images"
        most={mostImages}
        images={draft.images}
        onChange={(change) => onChange((before) => ({ ...before, images: change(before.images) }))}
      />
      <div class="field-row">
        <TextField
          name="unit_label"
          label="Unit"
          required={false}
          hint="What one of it is called, such as seat."
          maxLength={12}
          value={draft.unitLabel}
          onChange={(unitLabel) => set({ unitLabel })}
        />
        <TextField
          name="url"
          label="Page about it"
          required={false}
          type="url"
          hint="An https address."
          maxLength={2048}
          value={draft.url}
          onChange={(url) => set({ url })}
        />
      </div>
    </>
  )
}
