import type { FieldNames } from "../RefusedFields.ts"

interface CreatedWithin {
  readonly created_gte?: number
  readonly created_lte?: number
}

/** List parameters with `created_gte` and `created_lte` in Stripe's form, as one `created` object. */
export const withTimeRange = <A extends CreatedWithin>({ created_gte: gte, created_lte: lte, ...rest }: A) => ({
  ...rest,
  ...(gte === undefined && lte === undefined
    ? {}
    : { created: { ...(gte === undefined ? {} : { gte }), ...(lte === undefined ? {} : { lte }) } })
})

/** The callers' names of a time range's fields. */
export const timeRangeNames: FieldNames = { "created.gte": "created_gte", "created.lte": "created_lte" }
