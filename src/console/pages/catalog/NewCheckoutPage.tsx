import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Checkbox, FieldGroup, TextArea, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { ImagesField } from "./ImagesField.tsx"
import { emptyItem, type ItemDraft, readItems } from "./ItemDraft.ts"
import { ItemsField } from "./ItemsField.tsx"
import type { Problems } from "./PriceDraft.ts"
import { type QuestionDraft, readQuestions } from "./QuestionDraft.ts"
import { QuestionsField } from "./QuestionsField.tsx"
import { type LinkToShare, ShareLink } from "./ShareLink.tsx"

const names = { prefix: "items", adjustable: "adjustableQuantity" }

const labels = { title: "Title", text: "Text", imageUrl: "Image", successText: "Text after payment" }

/** A new checkout page, and then its address to give away. */
export const NewCheckoutPage = ({ onClose }: { readonly onClose: () => void }) => {
  const [created, setCreated] = useState<LinkToShare | undefined>(undefined)
  return (
    <Dialog title="New checkout page" open onClose={onClose}>
      {created === undefined ? (
        <PageForm onClose={onClose} onDone={setCreated} />
      ) : (
        <ShareLink link={created} onClose={onClose} />
      )}
    </Dialog>
  )
}

interface PageFormProps {
  readonly onClose: () => void
  readonly onDone: (link: LinkToShare) => void
}

const PageForm = ({ onClose, onDone }: PageFormProps) => {
  const { can, environment } = useWorkspace()
  const [title, setTitle] = useState("")
  const [text, setText] = useState("")
  const [images, setImages] = useState<ReadonlyArray<string>>([])
  const [alt, setAlt] = useState("")
  const [items, setItems] = useState<ReadonlyArray<ItemDraft>>([emptyItem(0)])
  const [asksAddress, setAsksAddress] = useState(false)
  const [asksPhone, setAsksPhone] = useState(false)
  const [questions, setQuestions] = useState<ReadonlyArray<QuestionDraft>>([])
  const [allowsCodes, setAllowsCodes] = useState(false)
  const [thanks, setThanks] = useState("")
  const [problems, setProblems] = useState<Problems>({})
  const sold = readItems(items, names)
  const asked = readQuestions(questions)
  const [imageUrl] = images
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) =>
      call(
        "checkoutPages",
        "create",
        {
          payload: {
            title: title.trim(),
            ...(text.trim() === "" ? {} : { text: text.trim() }),
            ...(imageUrl === undefined ? {} : { imageUrl, imageAlt: alt.trim() }),
            items: (sold.kind === "ready" ? sold.value : []).map(({ bounds, price, quantity }) => ({
              price,
              quantity,
              ...(bounds === undefined ? {} : { adjustableQuantity: bounds })
            })),
            collect: {
              billingAddress: asksAddress,
              phoneNumber: asksPhone,
              customFields: asked.kind === "ready" ? asked.value : []
            },
            allowPromotionCodes: allowsCodes,
            ...(thanks.trim() === "" ? {} : { successText: thanks.trim() })
          }
        },
        { idempotencyKey }
      ),
    (page) => {
      invalidate(`${environment}/catalog/checkout-pages`)
      onDone({ url: page.url, what: "checkout page" })
    }
  )
  return (
    <Form
      error={error}
      busy={busy}
      labels={labels}
      onSubmit={() => {
        setProblems({
          ...(sold.kind === "problems" ? sold.problems : {}),
          ...(asked.kind === "problems" ? asked.problems : {})
        })
        if (sold.kind === "ready" && asked.kind === "ready") submit()
      }}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy}>
            Create page
          </Button>
        </>
      }
    >
      <TextField name="title" label="Title" required maxLength={120} value={title} onChange={setTitle} />
      <TextArea
        name="text"
        label="Text"
        required={false}
        hint="Below the title. Line breaks are kept."
        rows={3}
        maxLength={2000}
        value={text}
        onChange={setText}
      />
      {can("products:write") ? (
        <ImagesField name="imageUrl" label="Image" most={1} images={images} onChange={setImages} />
      ) : null}
      {imageUrl === undefined ? null : (
        <TextField
          name="imageAlt"
          label="What the image shows"
          required={false}
          hint="For payers who don't see it; empty if it only decorates."
          maxLength={200}
          value={alt}
          onChange={setAlt}
        />
      )}
      <ItemsField {...names} items={items} onChange={setItems} problems={problems} />
      <FieldGroup label="What the payer is asked for">
        <Checkbox
          name="collect.billingAddress"
          label="Billing address"
          checked={asksAddress}
          onChange={setAsksAddress}
        />
        <Checkbox name="collect.phoneNumber" label="Phone number" checked={asksPhone} onChange={setAsksPhone} />
        <QuestionsField questions={questions} onChange={setQuestions} problems={problems} />
      </FieldGroup>
      <Checkbox
        name="allowPromotionCodes"
        label="Payers may enter a promotion code"
        checked={allowsCodes}
        onChange={setAllowsCodes}
      />
      <TextArea
        name="successText"
        label="Text after payment"
        required={false}
        hint="Without it, the payer goes to your return URL."
        rows={2}
        maxLength={1000}
        value={thanks}
        onChange={setThanks}
      />
    </Form>
  )
}
