import { type Draft, fieldsOf } from "../../../components/forms/Draft.ts"
import { TextArea, TextField } from "../../../components/forms/Field.tsx"
import { ImagesField } from "./ImagesField.tsx"
import type { ProductDraft } from "./ProductDraft.ts"

/** The API's limit. */
const mostImages = 8

export const ProductInputs = ({ draft, setDraft }: Pick<Draft<ProductDraft>, "draft" | "setDraft">) => {
  const field = fieldsOf(draft, setDraft)
  return (
    <>
      <TextField {...field("name")} label="Name" required maxLength={250} />
      <TextArea
        {...field("description")}
        label="Description"
        required={false}
        hint="What payers read beneath the name."
        rows={3}
        maxLength={40_000}
      />
      <ImagesField
        name="images"
        label="Images"
        most={mostImages}
        images={draft.images}
        onChange={(images) => setDraft((before) => ({ ...before, images: images(before.images) }))}
      />
      <div class="field-row">
        <TextField
          {...field("unitLabel", "unit_label")}
          label="Unit"
          required={false}
          hint="What one of it is called, such as seat."
          maxLength={12}
        />
        <TextField
          {...field("url")}
          label="Page about it"
          required={false}
          type="url"
          hint="An https address."
          maxLength={2048}
        />
      </div>
    </>
  )
}
