import { Button } from "../../components/Button.tsx"
import { Checkbox, FieldGroup, RadioGroup, SelectField, TextField } from "../../components/Field.tsx"
import { MoneyField } from "../../components/MoneyField.tsx"
import { CountField } from "./CountField.tsx"
import { currencyChoices } from "./Currencies.ts"
import { intervals, type PriceDraft, type Problems, type Scheme, type TierDraft } from "./PriceDraft.ts"

export interface PriceInputsProps {
  readonly draft: PriceDraft
  readonly onChange: (draft: PriceDraft) => void
  /** Problems found by the form, by the names in {@link PriceDraft}'s reader. */
  readonly problems: Problems
  /** The prefix of the API's field names, such as `default_price_data.`; default none. */
  readonly prefix?: string
  /** Omits what only a price created on its own can have: packages, tiers, trials, nicknames and lookup keys. */
  readonly isSimple?: boolean
  /** The currencies to offer first. */
  readonly currencies: ReadonlyArray<string>
}

/** The props of a part of the inputs, which changes some of the draft's fields. */
interface PartProps {
  readonly draft: PriceDraft
  readonly change: (changed: Partial<PriceDraft>) => void
  readonly problems: Problems
  readonly prefix: string
}

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

/** The inputs of a price: its frequency, amount and names. */
export const PriceInputs = ({
  currencies,
  draft,
  isSimple = false,
  onChange,
  prefix = "",
  problems
}: PriceInputsProps) => {
  const change = (changed: Partial<PriceDraft>) => onChange({ ...draft, ...changed })
  const part: PartProps = { draft, change, problems, prefix }
  const offered = schemes.filter(({ value }) => !isSimple || value === "fixed" || value === "chosen")
  return (
    <>
      <RadioGroup
        name={`${prefix}type`}
        label="Charged"
        value={draft.isRecurring ? "recurring" : "once"}
        options={frequencies}
        onChange={(frequency) => {
          const isRecurring = frequency === "recurring"
          // An amount that the payer chooses can't be recurring
          change({ isRecurring, ...(isRecurring && draft.scheme === "chosen" ? { scheme: "fixed" } : {}) })
        }}
      />
      {draft.isRecurring ? <Recurrence {...part} isSimple={isSimple} /> : null}
      <RadioGroup
        name={`${prefix}billing_scheme`}
        label="Amount"
        value={draft.scheme}
        options={offered.filter(({ value }) => value !== "chosen" || !draft.isRecurring)}
        onChange={(scheme) => change({ scheme })}
      />
      <SelectField
        name={`${prefix}currency`}
        label="Currency"
        value={draft.currency}
        options={currencyChoices(currencies)}
        onChange={(currency) => change({ currency })}
      />
      <AmountInputs {...part} />
      {isSimple ? null : <Names {...part} />}
    </>
  )
}

const Recurrence = ({ change, draft, isSimple, prefix, problems }: PartProps & { readonly isSimple: boolean }) => (
  <div class="field-row">
    <CountField
      name={`${prefix}recurring.interval_count`}
      label="Every"
      value={draft.intervalCount}
      onChange={(intervalCount) => change({ intervalCount })}
      problem={problems["recurring.interval_count"]}
    />
    <SelectField
      name={`${prefix}recurring.interval`}
      label="Period"
      value={draft.interval}
      options={intervals.map((interval) => ({
        value: interval,
        label: draft.intervalCount.trim() === "1" ? interval : `${interval}s`
      }))}
      onChange={(interval) => change({ interval })}
    />
    {isSimple ? null : (
      <CountField
        name={`${prefix}recurring.trial_period_days`}
        label="Free days at first"
        required={false}
        value={draft.trialDays}
        onChange={(trialDays) => change({ trialDays })}
        problem={problems["recurring.trial_period_days"]}
      />
    )}
  </div>
)

const AmountInputs = (props: PartProps) => {
  const { change, draft, prefix, problems } = props
  switch (draft.scheme) {
    case "fixed":
    case "package":
      return (
        <div class="field-row">
          <MoneyField
            name={`${prefix}unit_amount`}
            label={draft.scheme === "package" ? "Price of a package" : "Price"}
            currency={draft.currency}
            amount={draft.amount}
            onChange={(amount) => change({ amount })}
            problem={problems["unit_amount"]}
          />
          {draft.scheme === "package" ? (
            <>
              <CountField
                name={`${prefix}transform_quantity.divide_by`}
                label="Units in a package"
                value={draft.packageSize}
                onChange={(packageSize) => change({ packageSize })}
                problem={problems["transform_quantity.divide_by"]}
              />
              <SelectField
                name={`${prefix}transform_quantity.round`}
                label="A package that is not full"
                value={draft.rounding}
                options={[
                  { value: "up", label: "counts as a package" },
                  { value: "down", label: "is free" }
                ]}
                onChange={(rounding) => change({ rounding })}
              />
            </>
          ) : null}
        </div>
      )
    case "tiers":
      return <Tiers {...props} />
    case "chosen":
      return (
        <div class="field-row">
          <MoneyField
            name={`${prefix}custom_unit_amount.minimum`}
            label="At least"
            required={false}
            currency={draft.currency}
            amount={draft.minimum}
            onChange={(minimum) => change({ minimum })}
            problem={problems["custom_unit_amount.minimum"]}
          />
          <MoneyField
            name={`${prefix}custom_unit_amount.maximum`}
            label="At most"
            required={false}
            currency={draft.currency}
            amount={draft.maximum}
            onChange={(maximum) => change({ maximum })}
            problem={problems["custom_unit_amount.maximum"]}
          />
          <MoneyField
            name={`${prefix}custom_unit_amount.preset`}
            label="Shown at first"
            required={false}
            currency={draft.currency}
            amount={draft.preset}
            onChange={(preset) => change({ preset })}
            problem={problems["custom_unit_amount.preset"]}
          />
        </div>
      )
  }
}

/** The API's limit. */
const mostTiers = 25

const modes = [
  { value: "graduated", label: "Graduated", hint: "Each tier prices the units that fall into it." },
  { value: "volume", label: "By volume", hint: "The tier of the whole quantity prices all units." }
] as const

const Tiers = ({ change, draft, prefix, problems }: PartProps) => {
  const { tiers } = draft
  const changeTier = (index: number, changed: Partial<TierDraft>) =>
    change({ tiers: tiers.map((tier, at) => (at === index ? { ...tier, ...changed } : tier)) })
  const add = () => {
    const key = Math.max(...tiers.map((tier) => tier.key)) + 1
    // Inserted before the last tier, which has no upper bound
    change({
      tiers: [
        ...tiers.slice(0, -1),
        { key, upTo: "", unitAmount: undefined, flatAmount: undefined },
        ...tiers.slice(-1)
      ]
    })
  }
  return (
    <>
      <RadioGroup
        name={`${prefix}tiers_mode`}
        label="How tiers are counted"
        value={draft.tiersMode}
        options={modes}
        onChange={(tiersMode) => change({ tiersMode })}
      />
      {tiers.map((tier, index) => {
        const isLast = index === tiers.length - 1
        const name = `tiers.${index}`
        return (
          <FieldGroup key={tier.key} label={isLast ? "Last tier: all further units" : `Tier ${index + 1}`}>
            <div class="field-row">
              {isLast ? null : (
                <CountField
                  name={`${prefix}${name}.up_to`}
                  label="Up to unit"
                  value={tier.upTo}
                  onChange={(upTo) => changeTier(index, { upTo })}
                  problem={problems[`${name}.up_to`]}
                />
              )}
              <MoneyField
                name={`${prefix}${name}.unit_amount`}
                label="For each unit"
                currency={draft.currency}
                amount={tier.unitAmount}
                onChange={(unitAmount) => changeTier(index, { unitAmount })}
                problem={problems[`${name}.unit_amount`]}
              />
              <MoneyField
                name={`${prefix}${name}.flat_amount`}
                label="Flat, on top"
                required={false}
                currency={draft.currency}
                amount={tier.flatAmount}
                onChange={(flatAmount) => changeTier(index, { flatAmount })}
                problem={problems[`${name}.flat_amount`]}
              />
              {isLast ? null : (
                <Button
                  small
                  kind="quiet"
                  label={`Remove tier ${index + 1}`}
                  onClick={() => change({ tiers: tiers.filter((_, at) => at !== index) })}
                >
                  Remove
                </Button>
              )}
            </div>
          </FieldGroup>
        )
      })}
      {tiers.length < mostTiers ? (
        <p>
          <Button small onClick={add}>
            Add a tier
          </Button>
        </p>
      ) : null}
    </>
  )
}

const Names = ({ change, draft, prefix }: PartProps) => (
  <>
    <TextField
      name={`${prefix}nickname`}
      label="Nickname"
      required={false}
      hint="A note of your own. Payers don't see it."
      maxLength={250}
      value={draft.nickname}
      onChange={(nickname) => change({ nickname })}
    />
    <TextField
      name={`${prefix}lookup_key`}
      label="Lookup key"
      required={false}
      hint="Your integration's name for the price, such as basic. Only one price has it at a time."
      maxLength={200}
      monospace
      value={draft.lookupKey}
      onChange={(lookupKey) => change({ lookupKey })}
    />
    {draft.lookupKey.trim() === "" ? null : (
      <Checkbox
        name={`${prefix}transfer_lookup_key`}
        label="Take the key from the price that has it"
        hint="In one step: integrations that look the price up sell at this one from then on."
        checked={draft.transfersKey}
        onChange={(transfersKey) => change({ transfersKey })}
      />
    )}
  </>
)
