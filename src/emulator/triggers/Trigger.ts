import { Effect } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { OptionsOf, TriggerType } from "./TriggerList.ts"

/** The action of each trigger, in its transaction; returns the id of the object that it is about. */
export type Implementations = {
  readonly [T in TriggerType]: (context: RequestContext, options: OptionsOf<T>) => Effect.Effect<string, ProviderError>
}

/** Refuses (400) options for a new object if the option `param` names an existing one. */
export const onlyForNew = (param: string, options: object): Effect.Effect<void, ProviderError> => {
  const [first] = Object.keys(options)
  return first === undefined
    ? Effect.void
    : invalid(first, `\`${first}\` is for a new object; with \`${param}\` it has no effect.`)
}
