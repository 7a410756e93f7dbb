import { Effect, type Schema } from "effect"
import { decodeInput } from "../ControlInput.ts"
import { type ProviderError, refuse } from "../ProviderError.ts"
import type { RequestContext } from "../Route.ts"

/** What happens in a transaction; answers the id of the object that it is about. */
export type Happens = (context: RequestContext) => Effect.Effect<string, ProviderError>

/** A trigger: reads its options (refusing what it does not know) before anything happens. */
export interface Trigger {
  readonly prepare: (options: unknown) => Effect.Effect<Happens, ProviderError>
}

/** A trigger of its options and of what happens. */
export const trigger = <A, I>(
  options: Schema.Schema<A, I>,
  run: (context: RequestContext, options: A) => Effect.Effect<string, ProviderError>
): Trigger => ({
  prepare: (input) => Effect.map(decodeInput(options, input), (decoded) => (context) => run(context, decoded))
})

/**
 * Refuses (400) options that only a new object could have, where an object is named.
 *
 * @param param the option that names the object
 */
export const onlyForNew = (param: string, options: object): Effect.Effect<void, ProviderError> => {
  const [first] = Object.keys(options)
  return first === undefined
    ? Effect.void
    : Effect.fail(
        refuse({ param: first, message: `\`${first}\` is for a new object; with \`${param}\` it has no effect.` })
      )
}
