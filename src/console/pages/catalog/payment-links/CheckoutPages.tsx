import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { call } from "../../../api/Call.ts"
import { formatAmount } from "../../../components/amounts.ts"
import { AddButton, Button, RemoveButton } from "../../../components/Button.tsx"
import { ConfirmButton, Dialog } from "../../../components/Dialog.tsx"
import { type Draft, fieldsOf, useDraft } from "../../../components/forms/Draft.ts"
import { Checkbox, FieldGroup, SelectField, TextArea, TextField } from "../../../components/forms/Field.tsx"
import { Form } from "../../../components/forms/Form.tsx"
import type { Problems } from "../../../components/forms/Reader.ts"
import { Empty } from "../../../components/Loaded.tsx"
import { Time } from "../../../components/Time.tsx"
import { useWorkspace } from "../../../state/Session.ts"
import { toast } from "../../../state/Toasts.ts"
import { countedUpTo } from "../../overview/format.ts"
import { everyPeriod } from "../prices/PriceWords.ts"
import { ImagesField } from "../products/ImagesField.tsx"
import { type AddressFormProps, AddressList } from "./AddressList.tsx"
import {
  type CheckoutPage,
  type CheckoutPageDraft,
  draftOfPage,
  emptyCheckoutPage,
  itemNames,
  newPage,
  pageChanges
} from "./CheckoutPageDraft.ts"
import { ItemsField } from "./ItemsField.tsx"
import { emptyQuestion, keyOf, type QuestionDraft } from "./QuestionDraft.ts"

/** The API's limit. */
const mostQuestions = 3

const types = [
  { value: "text", label: "A text" },
  { value: "numeric", label: "Digits" },
  { value: "dropdown", label: "One of a list" }
] as const

const QuestionsField = (props: {
  /** The API's name for the array. */
  readonly name: string
  readonly value: ReadonlyArray<QuestionDraft>
  readonly onChange: (questions: ReadonlyArray<QuestionDraft>) => void
  readonly problems: Problems
}) => {
  const { name, onChange, problems, value: questions } = props
  const nextKey = Math.max(-1, ...questions.map(({ listKey }) => listKey)) + 1
  return (
    <>
      {questions.map((question, index) => {
        const field = fieldsOf(question, (change) => onChange(questions.with(index, change(question))), problems)
        const path = `${name}.${index}`
        return (
          <FieldGroup key={question.listKey} label={`Question ${index + 1}`}>
            <div class="field-row">
              <TextField {...field("label", `${path}.label`)} label="Question" maxLength={50} />
              <TextField
                {...field("key", `${path}.key`)}
                label="Key of the answer"
                required={false}
                monospace
                maxLength={40}
                placeholder={keyOf(question.label)}
              />
              <SelectField {...field("type", `${path}.type`)} label="Answer" options={types} />
            </div>
            {question.type === "dropdown" ? (
              <TextArea {...field("options", `${path}.options`)} label="Choices, one per line" rows={3} />
            ) : null}
            <Checkbox {...field("isOptional", `${path}.optional`)} label="The payer may leave it empty" />
            <RemoveButton
              label={`Remove question ${index + 1}`}
              onClick={() => onChange(questions.toSpliced(index, 1))}
            />
          </FieldGroup>
        )
      })}
      {questions.length < mostQuestions ? (
        <AddButton onClick={() => onChange([...questions, emptyQuestion(nextKey)])}>
          Ask a question of your own
        </AddButton>
      ) : null}
    </>
  )
}

interface CheckoutPageFormProps {
  readonly page: Draft<CheckoutPageDraft>
  readonly submit: string
  readonly onClose: () => void
}

const CheckoutPageForm = ({ onClose, page, submit }: CheckoutPageFormProps) => {
  const { draft, field, form, problems, setDraft } = page
  const { can } = useWorkspace()
  return (
    <Form {...form} submit={submit} onCancel={onClose}>
      <TextField {...field("title")} label="Title" required maxLength={120} />
      <TextArea
        {...field("text")}
        label="Text"
        required={false}
        hint="Below the title. Line breaks are kept."
        rows={3}
        maxLength={2000}
      />
      {can("products:write", "checkoutPages.create") ? (
        <ImagesField
          name="imageUrl"
          label="Image"
          most={1}
          images={draft.images}
          onChange={(images) => setDraft((before) => ({ ...before, images: images(before.images) }))}
        />
      ) : null}
      {draft.images.length === 0 ? null : (
        <TextField
          {...field("imageAlt")}
          label="Description of the image"
          required={false}
          hint="For payers who don't see it. Leave it empty if the image is only decoration."
          maxLength={200}
        />
      )}
      <ItemsField {...field("items")} {...itemNames} problems={problems} />
      <FieldGroup label="Ask the payer for">
        <Checkbox {...field("asksAddress", "collect.billingAddress")} label="Billing address" />
        <Checkbox {...field("asksPhone", "collect.phoneNumber")} label="Phone number" />
        <QuestionsField {...field("questions", "collect.customFields")} problems={problems} />
      </FieldGroup>
      <Checkbox {...field("allowsCodes", "allowPromotionCodes")} label="Payers may enter a promotion code" />
      <TextArea
        {...field("thanks", "successText")}
        label="Text after payment"
        required={false}
        hint="Without it, the payer goes to your return URL."
        rows={2}
        maxLength={1000}
      />
    </Form>
  )
}

export const NewPageForm = ({ onClose, onCreated }: AddressFormProps) => {
  const page = useDraft({
    initial: emptyCheckoutPage,
    read: newPage,
    send: (payload, idempotencyKey) => call("checkoutPages", "create", { payload }, { idempotencyKey }),
    onDone: ({ url }) => onCreated(url)
  })
  return <CheckoutPageForm page={page} submit="Create page" onClose={onClose} />
}

const EditCheckoutPage = ({ onClose, page }: { readonly page: CheckoutPage; readonly onClose: () => void }) => {
  const edited = useDraft({
    initial: () => draftOfPage(page),
    read: (draft: CheckoutPageDraft) => pageChanges(page, draft),
    send: (payload) => call("checkoutPages", "update", { path: { id: page.id }, payload }),
    onClose,
    onDone: ({ title }) => toast(`${title} was changed`)
  })
  return (
    <Dialog title={`Edit ${page.title}`} onClose={onClose}>
      <p class="quiet">Its address stays the same, and so do the payments that payers have begun there.</p>
      <CheckoutPageForm page={edited} submit="Save" onClose={onClose} />
    </Dialog>
  )
}

const DeletePage = ({ id, title }: CheckoutPage) => (
  <ConfirmButton
    button="Delete"
    label={`Delete ${title}`}
    small
    kind="quiet"
    title={`Delete ${title}?`}
    danger
    confirmLabel="Delete page"
    action={() => call("checkoutPages", "delete", { path: { id } })}
    onDone={() => toast(`${title} was deleted`)}
  >
    <p>
      This is final: whoever opens its address reads that it is gone. To stop selling for a while, close the page
      instead. Sessions that payers have opened already can still be paid.
    </p>
  </ConfirmButton>
)

const itemWords = ({ currency, recurring, unitAmount }: CheckoutPage["items"][number]): string => {
  const period = recurring === null ? undefined : everyPeriod(recurring.interval, recurring.intervalCount)
  const amount = unitAmount === null ? `an amount in ${currency.toUpperCase()}` : formatAmount(unitAmount, currency)
  return period === undefined ? amount : `${amount} ${period}`
}

export const CheckoutPageList = ({ action }: { readonly action: ComponentChildren }) => {
  const [edited, setEdited] = useState<CheckoutPage | undefined>(undefined)
  return (
    <>
      <AddressList<CheckoutPage>
        kind="checkout-pages"
        caption="Checkout pages, newest first"
        noun="page"
        load={(urlParams, signal) => call("checkoutPages", "list", { urlParams }, { signal })}
        empty={
          <Empty title="No checkout pages yet" action={action}>
            A checkout page has a title, a text and an image of your own. Payers choose there what they want, and pay at
            the provider. No shop is needed.
          </Empty>
        }
        columns={[
          {
            head: "Title",
            cell: ({ title, url }) => (
              <a href={url} target="_blank" rel="noreferrer">
                {title}
              </a>
            )
          },
          {
            head: "Sells",
            cell: ({ items }) => (
              <ul class="sold">
                {items.map((item) => (
                  <li key={item.price}>
                    {item.name} <span class="quiet">{itemWords(item)}</span>
                  </li>
                ))}
              </ul>
            )
          },
          { head: "Sales", align: "end", cell: ({ sales }) => countedUpTo(sales) },
          { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> }
        ]}
        isOpen={({ active }) => active}
        urlOf={({ url }) => url}
        nameOf={({ title }) => title}
        open={({ id }, active) => call("checkoutPages", "update", { path: { id }, payload: { active } })}
        actions={(page) => (
          <>
            <Button small kind="quiet" label={`Edit ${page.title}`} onClick={() => setEdited(page)}>
              Edit
            </Button>
            <DeletePage {...page} />
          </>
        )}
      />
      {edited && <EditCheckoutPage page={edited} onClose={() => setEdited(undefined)} />}
    </>
  )
}
