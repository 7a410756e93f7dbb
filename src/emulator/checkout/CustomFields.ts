import { Effect, Schema } from "effect"
import * as Params from "../api/Params.ts"
import { type ProviderError, refuse } from "../ProviderError.ts"
import { nulls, type Session } from "../Records.ts"

const alphanumeric = (max: number) => Params.matching(new RegExp(`^[a-zA-Z0-9]{1,${max}}$`), "alphanumeric text")

const length = Params.optional(Params.integer(1, 255))

export const collectionParams = {
  custom_fields: Params.optional(
    Params.listOf(
      Schema.Struct({
        key: alphanumeric(200),
        label: Schema.Struct({ type: Params.oneOf("custom"), custom: Params.text(50) }),
        type: Params.oneOf("dropdown", "numeric", "text"),
        optional: Params.optional(Params.boolean),
        dropdown: Params.optional(
          Schema.Struct({
            options: Params.listOf(Schema.Struct({ label: Params.text(100), value: alphanumeric(100) }), 200)
          })
        ),
        text: Params.optional(Schema.Struct({ minimum_length: length, maximum_length: length })),
        numeric: Params.optional(Schema.Struct({ minimum_length: length, maximum_length: length }))
      }),
      3
    )
  ),
  phone_number_collection: Params.optional(Schema.Struct({ enabled: Params.boolean }))
}

const collection = Schema.Struct(collectionParams)
type CustomFieldParams = NonNullable<(typeof collection.Type)["custom_fields"]>
type CustomField = Session["custom_fields"][number]

/** Refuses duplicate keys, and settings that do not match the field's type. */
export const checkCustomFields = (fields: CustomFieldParams = []): Effect.Effect<void, ProviderError> => {
  const invalid = (index: number, name: string, message: string) =>
    refuse({ param: `custom_fields[${index}][${name}]`, message })
  for (const [index, { dropdown, key, type }] of fields.entries()) {
    if (fields.findIndex((other) => other.key === key) < index) {
      return invalid(index, "key", "Each custom field must have a unique key.")
    }
    if ((type === "dropdown") !== (dropdown !== undefined)) {
      return invalid(index, "dropdown", "`dropdown` must be set for a field of that type, and for no other.")
    }
  }
  return Effect.void
}

const lengths = (bounds: { readonly minimum_length?: number; readonly maximum_length?: number } | undefined) => ({
  minimum_length: bounds?.minimum_length ?? null,
  maximum_length: bounds?.maximum_length ?? null
})

export const customFieldsOf = (fields: CustomFieldParams = []): ReadonlyArray<CustomField> =>
  fields.map(({ dropdown, key, label, numeric, optional = false, text, type }) => ({
    key,
    label,
    optional,
    type,
    ...(type === "dropdown"
      ? { dropdown: { default_value: null, options: dropdown?.options ?? [], value: null } }
      : {}),
    ...(type === "numeric" ? { numeric: { ...lengths(numeric), default_value: null, value: null } } : {}),
    ...(type === "text" ? { text: { ...lengths(text), default_value: null, value: null } } : {})
  }))

export const noDetails = {
  ...nulls("address business_name email individual_name name phone tax_ids"),
  tax_exempt: "none"
} as const

/** The payer's input; undefined or "" if empty. */
export interface Answers {
  readonly fields: Readonly<Record<string, string>>
  readonly phone: string | undefined
}

const answeredField = (field: CustomField, answer: string): Effect.Effect<CustomField, ProviderError> => {
  const invalid = (message: string) => refuse({ param: `fields[${field.key}]`, message })
  const name = field.label.custom ?? field.key
  if (answer === "") return field.optional ? Effect.succeed(field) : invalid(`${name} is needed.`)
  if (field.dropdown !== undefined && field.dropdown !== null) {
    return field.dropdown.options.some(({ value }) => value === answer)
      ? Effect.succeed({ ...field, dropdown: { ...field.dropdown, value: answer } })
      : invalid(`${name} must be one of the choices.`)
  }
  const bounds = field.numeric ?? field.text
  if (answer.length < (bounds?.minimum_length ?? 1) || answer.length > (bounds?.maximum_length ?? 255)) {
    return invalid(`${name} is too short or too long.`)
  }
  if (field.numeric !== undefined && field.numeric !== null) {
    return /^\d+$/.test(answer)
      ? Effect.succeed({ ...field, numeric: { ...field.numeric, value: answer } })
      : invalid(`${name} must have digits only.`)
  }
  return field.text === undefined || field.text === null
    ? Effect.succeed(field)
    : Effect.succeed({ ...field, text: { ...field.text, value: answer } })
}

export const withAnswers = (session: Session, { fields, phone = "" }: Answers): Effect.Effect<Session, ProviderError> =>
  Effect.gen(function* () {
    if (session.phone_number_collection?.enabled === true && phone === "") {
      return yield* refuse({ param: "phone", message: "A phone number is needed." })
    }
    const custom_fields = yield* Effect.forEach(session.custom_fields, (field) =>
      answeredField(field, fields[field.key] ?? "")
    )
    return {
      ...session,
      custom_fields,
      ...(session.phone_number_collection?.enabled === true ? { customer_details: { ...noDetails, phone } } : {})
    }
  })
