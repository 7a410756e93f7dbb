import { useState } from "preact/hooks"
import type { ApiError } from "../../api/ApiError.ts"
import { Checkbox, FieldGroup, TextArea, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { type CheckoutPageDraft, itemNames } from "./CheckoutPageDraft.ts"
import { ImagesField } from "./ImagesField.tsx"
import { ItemsField } from "./ItemsField.tsx"
import type { Problems } from "./PriceDraft.ts"
import { QuestionsField } from "./QuestionsField.tsx"

const labels = { title: "Title", text: "Text", imageUrl: "Image", successText: "Text after payment" }

export interface CheckoutPageFormProps {
  readonly draft: CheckoutPageDraft
  readonly onChange: (change: (before: CheckoutPageDraft) => CheckoutPageDraft) => void
  /** The problems in the draft; undefined if it can be sent. */
  readonly problems: Problems | undefined
  readonly busy: boolean
  readonly error: ApiError | undefined
  readonly submitLabel: string
  /** Called only without problems. */
  readonly onSubmit: () => void
  readonly onClose: () => void
}

export const CheckoutPageForm = (props: CheckoutPageFormProps) => {
  const { draft } = props
  const { can } = useWorkspace()
  const [isTried, setTried] = useState(false)
  const change = (changed: Partial<CheckoutPageDraft>) => props.onChange((before) => ({ ...before, ...changed }))
  const problems = (isTried ? props.problems : undefined) ?? {}
  return (
    <Form
      error={props.error}
      busy={props.busy}
      labels={labels}
      onSubmit={() => {
        setTried(true)
        if (props.problems === undefined) props.onSubmit()
      }}
      submit={props.submitLabel}
      onCancel={props.onClose}
    >
      <TextField
        name="title"
        label="Title"
        required
        maxLength={120}
        value={draft.title}
        onChange={(title) => change({ title })}
      />
      <TextArea
        name="text"
        label="Text"
        required={false}
        hint="Below the title. Line breaks are kept."
        rows={3}
        maxLength={2000}
        value={draft.text}
        onChange={(text) => change({ text })}
      />
      {can("products:write") ? (
        <ImagesField
          name="imageUrl"
          label="Image"
          most={1}
          images={draft.images}
          onChange={(images) => props.onChange((before) => ({ ...before, images: images(before.images) }))}
        />
      ) : null}
      {draft.images.length === 0 ? null : (
        <TextField
          name="imageAlt"
          label="What the image shows"
          required={false}
          hint="For payers who don't see it; empty if it only decorates."
          maxLength={200}
          value={draft.imageAlt}
          onChange={(imageAlt) => change({ imageAlt })}
        />
      )}
      <ItemsField {...itemNames} items={draft.items} onChange={(items) => change({ items })} problems={problems} />
      <FieldGroup label="What the payer is asked for">
        <Checkbox
          name="collect.billingAddress"
          label="Billing address"
          checked={draft.asksAddress}
          onChange={(asksAddress) => change({ asksAddress })}
        />
        <Checkbox
          name="collect.phoneNumber"
          label="Phone number"
          checked={draft.asksPhone}
          onChange={(asksPhone) => change({ asksPhone })}
        />
        <QuestionsField
          questions={draft.questions}
          onChange={(questions) => change({ questions })}
          problems={problems}
        />
      </FieldGroup>
      <Checkbox
        name="allowPromotionCodes"
        label="Payers may enter a promotion code"
        checked={draft.allowsCodes}
        onChange={(allowsCodes) => change({ allowsCodes })}
      />
      <TextArea
        name="successText"
        label="Text after payment"
        required={false}
        hint="Without it, the payer goes to your return URL."
        rows={2}
        maxLength={1000}
        value={draft.thanks}
        onChange={(thanks) => change({ thanks })}
      />
    </Form>
  )
}
