import type { ComponentChildren } from "preact"
import { useId } from "preact/hooks"
import { useRefusal } from "./Form.tsx"
import { notANumber, readCount } from "./Reader.ts"

interface FieldProps {
  readonly id: string
  readonly name: string
  readonly "aria-describedby": string | undefined
  readonly "aria-invalid": true | undefined
  readonly "aria-required": true | undefined
}

interface ReasonProps {
  readonly id?: string | undefined
  readonly role?: "alert" | "status"
  readonly text: string | undefined
}

export interface Described {
  readonly name: string
  readonly label: string
  readonly hint?: ComponentChildren
  readonly required?: boolean | undefined
  /** A problem found by the page, such as by a live check; the API's refusal takes precedence. */
  readonly problem?: string | undefined
}

const useDescription = ({ hint, label, name, problem }: Described) => {
  const id = useId()
  const reason = useRefusal(name, label) ?? problem
  const hintId = hint === undefined || hint === null ? undefined : `${id}-hint`
  const reasonId = reason === undefined ? undefined : `${id}-reason`
  const describedBy = [reasonId, hintId].filter((part) => part !== undefined).join(" ")
  return { id, reason, hintId, reasonId, describedBy: describedBy === "" ? undefined : describedBy }
}

export const Reason = ({ text, ...attributes }: ReasonProps) =>
  text === undefined ? null : (
    <p class="field-reason" {...attributes}>
      {text}
    </p>
  )

const Hint = ({ id, children }: { readonly id: string | undefined; readonly children?: ComponentChildren }) =>
  id === undefined ? null : (
    <p class="field-hint" id={id}>
      {children}
    </p>
  )

export const Field = (props: Described & { readonly children: (props: FieldProps) => ComponentChildren }) => {
  const { describedBy, hintId, id, reason, reasonId } = useDescription(props)
  return (
    <div class="field">
      <label for={id}>
        {props.label}
        {props.required === false ? <span class="field-optional"> (optional)</span> : null}
      </label>
      <Hint id={hintId}>{props.hint}</Hint>
      {props.children({
        id,
        name: props.name,
        "aria-describedby": describedBy,
        "aria-invalid": reason === undefined ? undefined : true,
        "aria-required": props.required === true ? true : undefined
      })}
      <Reason id={reasonId} text={reason} />
    </div>
  )
}

interface TextProps extends Described {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly maxLength?: number | undefined
  readonly placeholder?: string | undefined
  /** For codes, ids and URLs. */
  readonly monospace?: boolean
}

export const TextField = (
  props: TextProps & {
    readonly type?: "text" | "email" | "url" | "search" | "date" | "datetime-local"
    readonly autocomplete?: string
    readonly inputMode?: "decimal" | "numeric" | "email"
  }
) => (
  <Field {...props}>
    {(field) => (
      <input
        {...field}
        class={props.monospace === true ? "monospace" : undefined}
        type={props.type ?? "text"}
        value={props.value}
        maxLength={props.maxLength}
        placeholder={props.placeholder}
        autocomplete={props.autocomplete ?? "off"}
        inputMode={props.inputMode}
        spellcheck={props.type === undefined || props.type === "text" ? undefined : false}
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
    )}
  </Field>
)

/** A field for a whole number; reports anything else, and with `required` also an empty field. */
export const CountField = ({
  problem,
  ...field
}: Described & { readonly value: string; readonly onChange: (value: string) => void }) => {
  const written = readCount(field.value)
  const isWrong = written === "unreadable" || (written === "empty" && field.required === true)
  return <TextField {...field} inputMode="numeric" maxLength={12} problem={isWrong ? notANumber : problem} />
}

/** Binds the two ends of a time range to their fields. */
export type RangeField = (name: "from" | "to") => Pick<TextProps, "name" | "value" | "onChange">

export const DayFields = ({ field }: { readonly field: RangeField }) => (
  <>
    <TextField {...field("from")} label="From" type="date" />
    <TextField {...field("to")} label="To" type="date" />
  </>
)

export const TextArea = (props: TextProps & { readonly rows: number }) => (
  <Field {...props}>
    {(field) => (
      <textarea
        {...field}
        class={props.monospace === true ? "monospace" : undefined}
        rows={props.rows}
        value={props.value}
        maxLength={props.maxLength}
        placeholder={props.placeholder}
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
    )}
  </Field>
)

interface Choice<V extends string> {
  readonly value: V
  readonly label: string
  readonly hint?: string | undefined
}

export const SelectField = <V extends string>(
  props: Described & {
    readonly value: V
    readonly onChange: (value: V) => void
    readonly options: ReadonlyArray<Choice<V>>
  }
) => (
  <Field {...props}>
    {(field) => (
      <select
        {...field}
        value={props.value}
        onChange={(event) => {
          const chosen = props.options.find(({ value }) => value === event.currentTarget.value)
          if (chosen !== undefined) props.onChange(chosen.value)
        }}
      >
        {props.options.map(({ label, value }) => (
          <option key={value} value={value} selected={value === props.value}>
            {label}
          </option>
        ))}
      </select>
    )}
  </Field>
)

/** A filter of a list by one of some values, or by all. The address has the chosen one. */
export const FilterField = ({
  options,
  ...field
}: Omit<Parameters<typeof SelectField<string>>[0], "options"> & {
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
}) => (
  <SelectField {...field} options={[["", "All"] as const, ...options].map(([value, label]) => ({ value, label }))} />
)

export const Checkbox = (
  props: Described & {
    readonly value: boolean
    readonly onChange: (checked: boolean) => void
  }
) => {
  const { describedBy, hintId, id, reason, reasonId } = useDescription(props)
  return (
    <div class="field field-choice">
      <input
        id={id}
        name={props.name}
        type="checkbox"
        checked={props.value}
        aria-describedby={describedBy}
        aria-invalid={reason !== undefined || undefined}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{props.label}</label>
        <Hint id={hintId}>{props.hint}</Hint>
        <Reason id={reasonId} text={reason} />
      </div>
    </div>
  )
}

export const RadioGroup = <V extends string>(
  props: Described & {
    readonly value: V | undefined
    readonly onChange: (value: V) => void
    readonly options: ReadonlyArray<Choice<V>>
  }
) => {
  const { describedBy, hintId, id, reason, reasonId } = useDescription(props)
  return (
    <fieldset class="field field-group" aria-describedby={describedBy}>
      <legend>{props.label}</legend>
      <Hint id={hintId}>{props.hint}</Hint>
      {props.options.map(({ hint, label, value }) => (
        <div class="field-choice" key={value}>
          <input
            id={`${id}-${value}`}
            name={id}
            type="radio"
            value={value}
            checked={props.value === value}
            aria-describedby={hint && `${id}-${value}-hint`}
            aria-invalid={reason !== undefined || undefined}
            onChange={() => props.onChange(value)}
          />
          <div>
            <label for={`${id}-${value}`}>{label}</label>
            <Hint id={hint && `${id}-${value}-hint`}>{hint}</Hint>
          </div>
        </div>
      ))}
      <Reason id={reasonId} text={reason} />
    </fieldset>
  )
}

/** Groups related fields under one label. With a name, shows the API's refusal of that field below them. */
export const FieldGroup = (
  props: Omit<Described, "name"> & { readonly name?: string; readonly children: ComponentChildren }
) => {
  const { describedBy, hintId, reason, reasonId } = useDescription({ ...props, name: props.name ?? "" })
  return (
    <fieldset class="field field-group" aria-describedby={describedBy}>
      <legend>{props.label}</legend>
      <Hint id={hintId}>{props.hint}</Hint>
      {props.children}
      <Reason id={reasonId} text={reason} />
    </fieldset>
  )
}
