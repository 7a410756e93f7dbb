import { Effect } from "effect"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import type { Tools } from "./Tools.ts"

/** The tools of one connection: an agent works better with only the few that it needs. */

/** The maximum number of tools that a connection can name. */
export const maxChosenTools = 100

/** The form of a tool's name; errors repeat no other text from the request. */
const nameForm = /^[a-z_]{1,64}$/

const refused = (message: string) => new ValidationFailed({ message, fields: ["tools"] })

/**
 * The tools that the address of a connection names, as `?tools=list_products,get_product`: 1 to 100 names, separated by
 * commas. Without `tools`, all of them.
 *
 * @param target the target of the request's line, e.g. `/mcp?tools=list_products`
 */
export const chosenTools = (tools: Tools, target: string): Effect.Effect<Tools, ValidationFailed> => {
  const start = target.indexOf("?")
  if (start === -1) return Effect.succeed(tools)
  const query = new URLSearchParams(target.slice(start + 1))
  if ([...query.keys()].some((name) => name !== "tools")) {
    return new ValidationFailed({ message: "The tool server takes one query parameter: `tools`." })
  }
  const [list, ...others] = query.getAll("tools")
  if (list === undefined) return Effect.succeed(tools)
  const names = list.split(",", maxChosenTools + 1)
  if (others.length > 0 || names.length > maxChosenTools) {
    return refused(`\`tools\` in the query must be given once, with 1 to ${maxChosenTools} names, separated by commas.`)
  }
  const chosen = new Map<string, NonNullable<ReturnType<Tools["get"]>>>()
  for (const name of names) {
    const tool = tools.get(name)
    if (tool === undefined) {
      const which = nameForm.test(name) ? `; there is no tool ${name}` : ""
      return refused(`\`tools\` in the query must be names of tools, such as list_products${which}.`)
    }
    chosen.set(name, tool)
  }
  return Effect.succeed(chosen)
}
