import { ApiError } from "../../api/ApiError.ts"
import { call } from "../../api/Call.ts"
import { textAt } from "../../api/Reading.ts"
import { uuidForm } from "../deliveries/historyFilters.ts"

const unlessMissing = <A>(read: Promise<A>): Promise<A | undefined> =>
  read.catch((failure: unknown) => {
    if (failure instanceof ApiError && (failure.status === 404 || failure.status === 501)) return undefined
    throw failure
  })

/** Finds the page of an id that first has to be read: a delivery's or destination's UUID, a refund, a dispute. */
const lookUps: ReadonlyArray<{
  readonly form: RegExp
  readonly find: (id: string, signal: AbortSignal) => Promise<string | undefined>
}> = [
  {
    form: uuidForm,
    find: async (id, signal) => {
      if (await unlessMissing(call("deliveries", "get", { path: { id } }, { signal }))) return `/deliveries/${id}`
      const destination = await unlessMissing(call("endpoints", "get", { path: { id } }, { signal }))
      return destination === undefined ? undefined : `/destinations/${id}`
    }
  },
  {
    form: /^(?:re|pyr)_\w{1,250}$/,
    find: async (id, signal) => paymentOf(await unlessMissing(call("refunds", "get", { path: { id } }, { signal })))
  },
  {
    form: /^(?:dp|du)_\w{1,250}$/,
    find: async (id, signal) => paymentOf(await unlessMissing(call("disputes", "get", { path: { id } }, { signal })))
  }
]

const paymentOf = (object: unknown): string | undefined => {
  const id = textAt(object, "payment_intent") ?? textAt(object, "charge")
  return id === undefined ? undefined : `/payments/${id}`
}

/** How an id is looked up; undefined if the text is none of these. */
export const lookUpOf = (text: string) => {
  const found = lookUps.find(({ form }) => form.test(text))
  return found === undefined ? undefined : (signal: AbortSignal) => found.find(text, signal)
}
