import { AddButton, Button } from "../../../components/Button.tsx"
import { type Draft, fieldsOf } from "../../../components/forms/Draft.ts"
import {
  Checkbox,
  CountField,
  FieldGroup,
  RadioGroup,
  SelectField,
  TextField
} from "../../../components/forms/Field.tsx"
import { MoneyField } from "../../../components/forms/MoneyField.tsx"
import { currencyChoices } from "../Currencies.ts"
import { intervals, type PriceDraft, type Scheme, type TierDraft } from "./PriceDraft.ts"

interface PartProps {
  readonly price: Pick<Draft<PriceDraft>, "draft" | "setDraft" | "problems">
  /** The prefix of the API's field names, such as `default_price_data.`; default none. */
  readonly prefix?: string
}

const fieldsIn = ({ prefix, price: { draft, problems, setDraft } }: PartProps) =>
  fieldsOf(draft, setDraft, problems, prefix)

const frequencies = [
  { value: "once", label: "Once" },
  { value: "recurring", label: "Again and again, as a subscription" }
] as const

const schemes: ReadonlyArray<{ readonly value: Scheme; readonly label: string; readonly hint: string }> = [
  { value: "fixed", label: "Fixed", hint: "The same for each unit." },
  { value: "package", label: "By package", hint: "For a number of units together, such as a dozen." },
  { value: "tiers", label: "In tiers", hint: "Units cost less, or more, the more are bought." },
  { value: "chosen", label: "The payer chooses", hint: "For donations and tips: sold alone, and once." }
]

export const PriceInputs = ({
  currencies,
  isSimple = false,
  ...part
}: PartProps & {
  /** Omits what only a price created on its own can have: packages, tiers, trials, nicknames and lookup keys. */
  readonly isSimple?: boolean
  readonly currencies: ReadonlyArray<string>
}) => {
  const { draft, setDraft } = part.price
  const field = fieldsIn(part)
  const offered = schemes
    .filter(({ value }) => !isSimple || value === "fixed" || value === "chosen")
    .filter(({ value }) => value !== "chosen" || !draft.isRecurring)
  return (
    <>
      <RadioGroup
        name={`${part.prefix ?? ""}type`}
        label="Charged"
        value={draft.isRecurring ? "recurring" : "once"}
        options={frequencies}
        onChange={(frequency) => {
          const isRecurring = frequency === "recurring"
          // An amount that the payer chooses can't be recurring
          const scheme = isRecurring && draft.scheme === "chosen" ? "fixed" : draft.scheme
          setDraft((before) => ({ ...before, isRecurring, scheme }))
        }}
      />
      {draft.isRecurring ? <Recurrence {...part} isSimple={isSimple} /> : null}
      <RadioGroup {...field("scheme", "billing_scheme")} label="Amount" options={offered} />
      <SelectField {...field("currency")} label="Currency" options={currencyChoices(currencies)} />
      <AmountInputs {...part} />
      {isSimple ? null : (
        <NameInputs
          field={field}
          keyHint="Your integration's name for the price, such as basic. Only one price has it at a time."
          hasNewKey={draft.lookupKey.trim() !== ""}
          transferHint="In one step: integrations that look the price up sell at this one from then on."
        />
      )}
    </>
  )
}

const Recurrence = ({ isSimple, ...part }: PartProps & { readonly isSimple: boolean }) => {
  const field = fieldsIn(part)
  const options = intervals.map((interval) => ({
    value: interval,
    label: part.price.draft.intervalCount.trim() === "1" ? interval : `${interval}s`
  }))
  return (
    <div class="field-row">
      <CountField {...field("intervalCount", "recurring.interval_count")} label="Every" />
      <SelectField {...field("interval", "recurring.interval")} label="Period" options={options} />
      {isSimple ? null : (
        <CountField
          {...field("trialDays", "recurring.trial_period_days")}
          label="Free days at first"
          required={false}
        />
      )}
    </div>
  )
}

const roundings = [
  { value: "up", label: "counts as a package" },
  { value: "down", label: "is free" }
] as const

const AmountInputs = (part: PartProps) => {
  const { currency, scheme } = part.price.draft
  const field = fieldsIn(part)
  switch (scheme) {
    case "fixed":
      return (
        <div class="field-row">
          <MoneyField {...field("amount", "unit_amount")} label="Price" currency={currency} />
        </div>
      )
    case "package":
      return (
        <div class="field-row">
          <MoneyField {...field("amount", "unit_amount")} label="Price of a package" currency={currency} />
          <CountField {...field("packageSize", "transform_quantity.divide_by")} label="Units in a package" />
          <SelectField
            {...field("rounding", "transform_quantity.round")}
            label="A package that is not full"
            options={roundings}
          />
        </div>
      )
    case "tiers":
      return <Tiers {...part} />
    case "chosen": {
      const bound = (name: "minimum" | "maximum" | "preset", label: string) => (
        <MoneyField {...field(name, `custom_unit_amount.${name}`)} label={label} required={false} currency={currency} />
      )
      return (
        <div class="field-row">
          {bound("minimum", "At least")}
          {bound("maximum", "At most")}
          {bound("preset", "Shown at first")}
        </div>
      )
    }
  }
}

/** The API's limit. */
const mostTiers = 25

const modes = [
  { value: "graduated", label: "Graduated", hint: "Each tier prices the units that fall into it." },
  { value: "volume", label: "By volume", hint: "The tier of the whole quantity prices all units." }
] as const

const Tiers = (part: PartProps) => {
  const { draft, problems, setDraft } = part.price
  const { currency, tiers } = draft
  const change = (changed: ReadonlyArray<TierDraft>) => setDraft((before) => ({ ...before, tiers: changed }))
  const nextKey = Math.max(...tiers.map(({ key }) => key)) + 1
  // Inserted before the last tier, which has no upper bound
  const add = () =>
    change(tiers.toSpliced(-1, 0, { key: nextKey, upTo: "", unitAmount: undefined, flatAmount: undefined }))
  return (
    <>
      <RadioGroup {...fieldsIn(part)("tiersMode", "tiers_mode")} label="How tiers are counted" options={modes} />
      {tiers.map((tier, index) => {
        const isLast = index === tiers.length - 1
        const field = fieldsOf(tier, (changed) => change(tiers.with(index, changed(tier))), problems, part.prefix)
        const name = `tiers.${index}`
        return (
          <FieldGroup key={tier.key} label={isLast ? "Last tier: all further units" : `Tier ${index + 1}`}>
            <div class="field-row">
              {isLast ? null : <CountField {...field("upTo", `${name}.up_to`)} label="Up to unit" />}
              <MoneyField {...field("unitAmount", `${name}.unit_amount`)} label="For each unit" currency={currency} />
              <MoneyField
                {...field("flatAmount", `${name}.flat_amount`)}
                label="Flat, on top"
                required={false}
                currency={currency}
              />
              {isLast ? null : (
                <Button
                  small
                  kind="quiet"
                  label={`Remove tier ${index + 1}`}
                  onClick={() => change(tiers.toSpliced(index, 1))}
                >
                  Remove
                </Button>
              )}
            </div>
          </FieldGroup>
        )
      })}
      {tiers.length < mostTiers ? <AddButton onClick={add}>Add a tier</AddButton> : null}
    </>
  )
}

/** A price's names: its only fields that can be changed later. */
type NameDraft = Pick<PriceDraft, "nickname" | "lookupKey" | "transfersKey">

interface NameInputsProps {
  readonly field: ReturnType<typeof fieldsOf<NameDraft>>
  readonly keyHint: string
  /** Whether a new lookup key was written, which another price may have. */
  readonly hasNewKey: boolean
  readonly transferHint?: string
}

export const NameInputs = ({ field, hasNewKey, keyHint, transferHint }: NameInputsProps) => (
  <>
    <TextField
      {...field("nickname")}
      label="Nickname"
      required={false}
      hint="A note of your own. Payers don't see it."
      maxLength={250}
    />
    <TextField
      {...field("lookupKey", "lookup_key")}
      label="Lookup key"
      required={false}
      hint={keyHint}
      maxLength={200}
      monospace
    />
    {hasNewKey ? (
      <Checkbox
        {...field("transfersKey", "transfer_lookup_key")}
        label="Take the key from the price that has it"
        hint={transferHint}
      />
    ) : null}
  </>
)
