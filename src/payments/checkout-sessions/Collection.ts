import { Schema } from "effect"
import { PrintableText, text } from "../../platform/bounds/Text.ts"
import { described, optional } from "../../platform/kit/Request.ts"
import type { BrokenRule } from "../Schemas.ts"

/** Entered and stored at the provider: personal data never passes through this service. */

const alphanumeric = (max: number, description: string) =>
  text({
    min: 1,
    max,
    pattern: /^[a-zA-Z0-9]+$/,
    rule: `must be 1 to ${max} letters and digits`
  }).annotations({ description })

const Option = Schema.Struct({
  label: described(PrintableText(100), "The label that the payer reads"),
  value: alphanumeric(100, "The value in the session if it is chosen")
}).annotations({ identifier: "CustomFieldsItemOptions" })

const FieldType = Schema.Literal("text", "numeric", "dropdown").annotations({
  identifier: "CustomFieldsItemType",
  description: "`text`, `numeric` or `dropdown`, which needs `options`"
})

const repeated = (values: ReadonlyArray<string>, path: (index: number) => BrokenRule["path"]): Array<BrokenRule> =>
  values.flatMap((value, index) =>
    values.indexOf(value) < index ? [{ path: path(index), message: "appears more than once" }] : []
  )

const CustomField = Schema.Struct({
  key: alphanumeric(40, "The name of the answer in the session's `custom_fields`"),
  label: described(PrintableText(50), "The label that the payer reads"),
  type: FieldType,
  optional: optional(Schema.Boolean, "Whether the payer may leave it empty; default false"),
  options: optional(
    Schema.Array(Option)
      .pipe(Schema.minItems(1), Schema.maxItems(50))
      .annotations({ description: "The choices of a `dropdown`, which needs them" })
  )
})
  .pipe(
    Schema.filter(({ options, type }): Array<BrokenRule> => {
      if ((type === "dropdown") !== (options !== undefined)) {
        return [{ path: ["options"], message: "is required for a `dropdown`, and allowed for no other type" }]
      }
      return repeated(options?.map(({ value }) => value) ?? [], (index) => ["options", index, "value"])
    })
  )
  .annotations({ identifier: "CustomFields" })

const ShownOption = Schema.Struct({
  label: described(Schema.String, "The choice's label, which the payer reads"),
  value: described(Schema.String, "The value of the answer if the payer chooses it")
}).annotations({ identifier: "CheckoutPageCollectionCustomFieldsItemOptionsItem" })

/** A `SessionCollection` in answers, with every part present. */
export const ShownCollection = Schema.Struct({
  billingAddress: described(Schema.Boolean, "Whether a billing address is required"),
  phoneNumber: described(Schema.Boolean, "Whether a phone number is required"),
  customFields: Schema.Array(
    Schema.Struct({
      key: described(Schema.String, "The field's name in the checkout session"),
      label: described(Schema.String, "The field's label, which the payer reads"),
      type: described(FieldType, "`text`, `numeric` or `dropdown`"),
      optional: optional(Schema.Boolean, "Whether the payer may leave it empty"),
      options: optional(Schema.Array(ShownOption), "The choices that the payer has")
    }).annotations({ identifier: "CheckoutPageCollectionCustomFieldsItem" })
  ).annotations({ description: "Fields of the organization's own" })
}).annotations({
  identifier: "CheckoutPageCollection",
  description: "The details that the provider's page asks the payer for. The answers are in the checkout session"
})
export type ShownCollection = typeof ShownCollection.Type

export const SessionCollection = Schema.Struct({
  billingAddress: optional(Schema.Boolean, "Whether a billing address is required"),
  phoneNumber: optional(Schema.Boolean, "Whether a phone number is required"),
  customFields: optional(
    Schema.Array(CustomField).pipe(
      Schema.maxItems(3),
      Schema.filter((fields) =>
        repeated(
          fields.map(({ key }) => key),
          (index) => [index, "key"]
        )
      )
    ),
    "Up to 3 fields of your own, which the payer fills in"
  )
}).annotations({
  identifier: "Collect",
  description:
    "The details that the provider's page asks the payer for. The answers are in the checkout session, and never pass through this service's page"
})
export type SessionCollection = typeof SessionCollection.Type
