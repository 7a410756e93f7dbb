import { eventTypes } from "../../events/Catalog.ts"
import { exampleEvent } from "../../events/Samples.ts"

/** The reference of events for integrators (contract 6): each type with an example, from the catalog. */

/** JSON on one line, with spaces for readability. */
const onOneLine = (value: unknown): string => JSON.stringify(value, undefined, 1).replaceAll(/\n */g, " ")

export const eventTable = (): string => {
  const rows = eventTypes.map(
    ({ description, type }) => `| \`${type}\` | ${description} | \`${onOneLine(exampleEvent(type).data)}\` |`
  )
  return [
    "```json",
    JSON.stringify(exampleEvent("payment.succeeded"), undefined, 2),
    "```",
    "",
    "| `type` | | `data` |",
    "| --- | --- | --- |",
    ...rows,
    ""
  ].join("\n")
}
