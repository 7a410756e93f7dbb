import { Effect, type Schema } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { decodeInput } from "../control/ControlInput.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"

/** The action of a trigger, in its transaction; returns the id of the object that it is about. */
export type Happens = (context: RequestContext) => Effect.Effect<string, ProviderError>

/** A trigger: decodes its options, and refuses unknown ones, before anything happens. */
export type Trigger = (options: unknown) => Effect.Effect<Happens, ProviderError>

export const trigger =
  <A, I>(
    options: Schema.Schema<A, I>,
    run: (context: RequestContext, options: A) => Effect.Effect<string, ProviderError>
  ): Trigger =>
  (input) =>
    Effect.map(decodeInput(options, input), (decoded) => (context) => run(context, decoded))

/** Refuses (400) options for a new object if the option `param` names an existing one. */
export const onlyForNew = (param: string, options: object): Effect.Effect<void, ProviderError> => {
  const [first] = Object.keys(options)
  return first === undefined
    ? Effect.void
    : invalid(first, `\`${first}\` is for a new object; with \`${param}\` it has no effect.`)
}
