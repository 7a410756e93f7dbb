import { Option } from "effect"
import { EventType, eventData, eventSubjects } from "../../events/Catalog.ts"
import { permissions } from "../../identity/keys/Permissions.ts"
import { operations } from "../contract/Api.ts"
import { tagOf } from "../contract/Document.ts"

/**
 * The operations that the console can call, and the event types that it shows, as its own module: the contract's declarations with their schemas would be
 * several times as large as the console itself.
 */

export const consoleOperationsPath = "console/api/operations.ts"

/** Groups whose operations are not for people's browsers, or are pages themselves. */
const otherGroups: ReadonlySet<string> = new Set([
  "accountPages",
  "currentKey",
  "eventStream",
  "health",
  "inbound",
  "payPages",
  "publicImages"
])

export const consoleOperations = (): string => {
  const lines = operations
    .filter(({ group, name }) => !otherGroups.has(group) && name !== "page")
    .map(({ endpoint, group, method, name, path }) => {
      const takesKey = Option.isSome(endpoint.headersSchema)
      return `  "${group}.${name}": ["${method}", "${path}", ${takesKey}]`
    })
  const types = EventType.literals.map((type) => {
    const { items, metadata } = eventSubjects[type]
    return `  "${type}": { money: ${"currency" in eventData[type].fields}, items: ${items}, metadata: ${metadata} }`
  })
  const uses = permissions.map((permission) => {
    const needing = operations.filter((operation) => operation.permission === permission)
    const groups = [
      ...new Set(needing.map(({ group }) => tagOf(group).replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())))
    ]
    const first = needing.find(({ method, path }) => method === "GET" && /^[^:]*:organizationId[^:]*$/.test(path))
    return `  "${permission}": { uses: "${groups.join(", ")}", first: ${first === undefined ? "null" : `"${first.path}"`} }`
  })
  return `/** Generated from the contract by \`npm run docs\`: the method and path of each operation, and whether it takes an idempotency key. */
export const operations = {
${lines.join(",\n")}
} as const satisfies Readonly<Record<string, readonly [method: string, path: string, takesKey: boolean]>>

export type OperationKey = keyof typeof operations

/** The event types, with what filters can read of each one's events: currency and amount, products and prices, metadata. */
export const eventFilters = {
${types.join(",\n")}
} as const

/** For each permission: the subjects of the operations that need it, and one to read first, or null. */
export const permissionUses = {
${uses.join(",\n")}
} as const
`
}
