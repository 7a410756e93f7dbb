import { readFileSync } from "node:fs"
import { Option } from "effect"
import { EventType, eventData, eventSubjects } from "../../events/Catalog.ts"
import { permissions } from "../../identity/keys/Permissions.ts"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { operations } from "../contract/Api.ts"
import { tagOf } from "../contract/Document.ts"
import { guideFile } from "./Guides.ts"

/**
 * The console's copy of the contract, as data: the contract's declarations with their schemas would be several times as
 * large as the console itself.
 */

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

/** One entry a line, as people read it. */
const jsonOf = (entries: ReadonlyArray<readonly [name: string, value: object | string]>): string =>
  `{\n${entries.map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(",\n")}\n}\n`

/** The method and path of each operation, and whether it takes an idempotency key. */
const callable = operations
  .filter(({ group, name }) => !otherGroups.has(group) && name !== "page")
  .map(({ endpoint, group, method, name, path }) => {
    const takesKey = Option.isSome(endpoint.headersSchema)
    return [`${group}.${name}`, { method, path, takesKey }] as const
  })

/** The facts that filters can read in the events of each type: currency and amount, products and prices, metadata. */
const filtered = EventType.literals.map((type) => {
  const { items, metadata } = eventSubjects[type]
  return [type, { money: "currency" in eventData[type].fields, items, metadata }] as const
})

/** The subjects of the operations that need each permission, and one to read first, or null. */
const uses = permissions.map((permission) => {
  const needing = operations.filter((operation) => operation.permission === permission)
  const groups = new Set(
    needing.map(({ group }) => tagOf(group).replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase()))
  )
  const first = needing.find(({ method, path }) => method === "GET" && /^[^:]*:organizationId[^:]*$/.test(path))
  return [permission, { uses: [...groups].join(", "), first: first?.path ?? null }] as const
})

/** The functions of the guide's verifiers, from the line that each begins with. */
const verifierStarts = { python: "import", go: "func", ruby: "require", php: "function" }

const verifiers = () => {
  const guide = readFileSync(new URL(guideFile("verifying"), packageRoot), "utf8")
  return Object.entries(verifierStarts).map(([language, start]) => {
    const [, code] = new RegExp(`^\`\`\`${language}\\n(?:[^\`]*?\\n)??(${start} [^\`]*)\`\`\`$`, "m").exec(guide) ?? []
    if (code === undefined) throw new Error(`The guide has no verifier in ${language}`)
    return [language, code] as const
  })
}

/** By their paths in `src`. */
export const consoleData: Readonly<Record<string, string>> = {
  "console/api/operations.json": jsonOf(callable),
  "console/api/eventFilters.json": jsonOf(filtered),
  "console/api/permissionUses.json": jsonOf(uses),
  "console/api/verifiers.json": jsonOf(verifiers())
}
