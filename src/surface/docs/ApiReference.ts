import { Predicate } from "effect"
import { sessionCookie } from "../../identity/Authentication.ts"
import { anchorOf, errorReferencePath } from "../../platform/kit/ErrorLink.ts"
import { escaped } from "../../platform/kit/Page.ts"
import { operations } from "../contract/Api.ts"
import { recordIn, tagOf } from "../contract/Document.ts"
import { renderSections, type Section, withCode } from "./Markdown.ts"

/**
 * The API reference: a page for each tag of the OpenAPI document, and a first page that lists all operations. Static HTML,
 * in the guides' frame. Pure.
 */

type Json = Record<string, unknown>

/** The public paths of the contract's documents: the OpenAPI document, and the first page of the reference. */
export const documentPaths = { openApi: "/openapi.json", reference: "/docs/reference" } as const

const eventsTag = "Webhooks"

const pathOfTag = (tag: string) => `${documentPaths.reference}/${tag.toLowerCase().replaceAll(" ", "-")}` as const

/** The reference's pages besides the first: their public paths by tag. */
export const referencePathsWithout = (unsupported: ReadonlySet<string>) =>
  new Map(
    [
      ...operations.filter(({ group, name }) => !unsupported.has(`${group}.${name}`)).map(({ group }) => tagOf(group)),
      eventsTag
    ].map((tag) => [tag, pathOfTag(tag)] as const)
  )

export const referencePaths = referencePathsWithout(new Set())

export interface ReferencePage {
  readonly path: string
  readonly title: string
  /** Its heading with what comes before the operations, then each operation or event, then the objects in answers. */
  readonly sections: ReadonlyArray<Section>
}

const listIn = (holder: Json, key: string): ReadonlyArray<Json> => {
  const list = holder[key]
  return Array.isArray(list) ? list.filter(Predicate.isRecord) : []
}

const textIn = (holder: Json, key: string): string => {
  const text = holder[key]
  return typeof text === "string" ? text : ""
}

const code = (text: unknown): string => `<code>${escaped(String(text))}</code>`

const block = (text: string): string => `<pre tabindex="0"><code>${escaped(text)}</code></pre>`

const pretty = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, undefined, 2))

/** A path that may break between its parts, so that it fits a phone. */
const breakable = (path: string): string => escaped(path).replaceAll(/(?<=\w|\})\//g, "<wbr>/")

const section = (anchor: string, depth: 2 | 3, heading: string, body: string): Section => ({
  anchor,
  depth,
  heading,
  html: `<section>
<h${depth} id="${anchor}">${withCode(heading)} <a class="anchor" href="#${anchor}" aria-label="Link to this heading">#</a></h${depth}>
${body}
</section>
`
})

const bounds = (least: unknown, most: unknown, unit: string): ReadonlyArray<string> => {
  const from = Number(least ?? 0)
  const to = Number(most ?? Number.POSITIVE_INFINITY)
  if (to < Number.MAX_SAFE_INTEGER) {
    return [least === undefined ? `up to ${to}${unit}` : from === to ? `${to}${unit}` : `${from} to ${to}${unit}`]
  }
  return from > 0 ? [`at least ${from}${unit}`] : []
}

const componentPrefix = "#/components/schemas/"

/** Describes schemas by the document's components. */
class Fields {
  readonly linked = new Set<string>()

  readonly schemas: Json
  private readonly links: boolean

  /** @param links whether a type links to an object's component; otherwise the object's fields follow the field */
  constructor(schemas: Json, links: boolean) {
    this.schemas = schemas
    this.links = links
  }

  private target({ $ref }: Json): readonly [name: string, schema: Json] | undefined {
    if (typeof $ref !== "string") return undefined
    const name = $ref.slice(componentPrefix.length)
    return [name, recordIn(this.schemas, name)]
  }

  /** The alternatives of a schema; itself if it has none. */
  private alternatives(schema: Json): ReadonlyArray<Json> {
    const any = listIn(schema, "anyOf")
    return any.length === 0 ? [schema] : any
  }

  /** The type of a schema's values, with their bounds, as HTML. */
  typeOf(schema: Json): string {
    const target = this.target(schema)
    if (target !== undefined) {
      const [name, component] = target
      if (!this.links || Object.keys(recordIn(component, "properties")).length === 0) return this.typeOf(component)
      this.linked.add(name)
      return `<a href="#${escaped(name)}">${escaped(name)}</a>`
    }
    const any = listIn(schema, "anyOf")
    if (any.length > 0) return [...new Set(any.map((one) => this.typeOf(one)))].join(" or ")
    if ("const" in schema) return code(pretty(schema["const"]) || '""')
    const values = schema["enum"]
    if (Array.isArray(values)) return values.map(code).join(", ")
    const types = [schema["type"] ?? "any"].flat()
    const length = bounds(schema["minLength"], schema["maxLength"], " characters")
    const size = bounds(schema["minItems"], schema["maxItems"], " items")
    const range = bounds(schema["minimum"] ?? schema["exclusiveMinimum"], schema["maximum"], "")
    const words = types.map((type) => {
      if (type === "array") return `list of ${this.typeOf(recordIn(schema, "items"))}`
      const format = textIn(schema, "format").replace("int64", "")
      const values = recordIn(schema, "additionalProperties")
      if (type === "object" && "type" in values) return `object with values: ${this.typeOf(values)}`
      return `${type}${format === "" ? "" : ` (${format})`}`
    })
    return [words.join(" or "), ...length, ...size, ...range].join(", ")
  }

  /** The fields of the objects within a schema whose types are not links. */
  within(schema: Json, above: ReadonlyArray<unknown> = []): string {
    const target = this.target(schema)
    if (target !== undefined) {
      const [, component] = target
      return this.links || above.includes(component) ? "" : this.within(component, [...above, component])
    }
    if ("properties" in schema) return this.listOf(schema, above)
    const parts = "items" in schema ? [recordIn(schema, "items")] : this.alternatives(schema)
    return parts[0] === schema ? "" : parts.map((part) => this.within(part, above)).join("")
  }

  listOf(schema: Json, above: ReadonlyArray<unknown> = []): string {
    const required = [schema["required"]].flat()
    const entries = Object.entries(recordIn(schema, "properties")).map(([name, value]) => {
      const field = recordIn(value)
      const needed = !this.links && required.includes(name) ? ", <strong>required</strong>" : ""
      const text = withCode(textIn(field, "description"))
      return `<dt>${code(name)} <small>${this.typeOf(field)}${needed}</small></dt>\n<dd>${text}${this.within(field, above)}</dd>`
    })
    return entries.length === 0 ? "" : `<dl class="fields">\n${entries.join("\n")}\n</dl>`
  }
}

const quotedForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const bodyOptions = (described: Json): ReadonlyArray<string> => {
  const content = recordIn(described, "requestBody", "content")
  const [type, media] = Object.entries(content)[0] ?? []
  if (type === undefined) return []
  const { example } = recordIn(media)
  if ("multipart/form-data" in content) return ["-F file=@image.png"]
  if (type === "application/json") {
    return [`-H 'content-type: application/json'`, `-d ${quotedForShell(pretty(example ?? {}))}`]
  }
  return Object.entries(recordIn(example)).map(
    ([name, value]) => `--data-urlencode ${quotedForShell(`${name}=${String(value)}`)}`
  )
}

/** A request with curl, with the variables of the guides: the service's URL, the organization and the key. */
const curlOf = (method: string, path: string, described: Json): string => {
  const parameters = listIn(described, "parameters").filter(({ example }) => example !== undefined)
  const shown = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const { example } = parameters.find((one) => one["name"] === name) ?? {}
    return name === "organizationId" ? "$ORGANIZATION" : example === undefined ? whole : String(example)
  })
  const query = parameters
    .filter((one) => one["in"] === "query")
    .flatMap(({ example, name }) => [example].flat().map((value): [string, string] => [String(name), String(value)]))
  const credentials = listIn(described, "security").flatMap(Object.keys)
  const options = [
    ...(method === "GET" ? [] : [`-X ${method}`]),
    `"$URL${shown}${query.length === 0 ? "" : `?${new URLSearchParams(query)}`}"`,
    ...(credentials.includes("apiKey")
      ? ['-H "x-api-key: $KEY"']
      : credentials.includes("session")
        ? [`-H "cookie: ${sessionCookie}=$SESSION"`, ...(method === "GET" ? [] : ['-H "origin: $URL"'])]
        : []),
    ...parameters
      .filter((one) => one["in"] === "header")
      .map(({ example, name }) => `-H ${quotedForShell(`${name}: ${example}`)}`),
    ...bodyOptions(described)
  ]
  return `curl ${options.join(" \\\n  ")}`
}

/** The document's description of a part, if any. */
const paragraph = (part: Json): string => {
  const text = textIn(part, "description")
  return text === "" ? "" : `<p>${withCode(text)}</p>\n`
}

const heading = (text: string, html: string): string => (html === "" ? "" : `<h4>${text}</h4>\n${html}\n`)

/** The codes that a refusal's description names, each with a link to what it means. */
const errorsOf = (responses: Json): string => {
  const lines = Object.entries(responses).flatMap(([status, response]) => {
    if (!(Number(status) >= 400)) return []
    const links = [...textIn(recordIn(response), "description").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => {
      const anchor = anchorOf({ code: name, status: Number(status) })
      return `<a href="${errorReferencePath}#${anchor}">${code(name)}</a>`
    })
    return [`<dt>${status}</dt>\n<dd>${links.join(", ")}</dd>`]
  })
  return lines.length === 0
    ? ""
    : `<details><summary>Errors</summary>\n<dl class="errors">\n${lines.join("\n")}\n</dl>\n</details>`
}

const exampleOf = (media: Json): unknown => media["example"] ?? recordIn(media, "examples", "example")["value"]

const answersOf = (responses: Json, fields: Fields): string =>
  Object.entries(responses)
    .filter(([status]) => Number(status) < 300)
    .map(([status, response]) => {
      const [type = "no body", media] = Object.entries(recordIn(response, "content"))[0] ?? []
      const schema = recordIn(media, "schema")
      const example = exampleOf(recordIn(media))
      const what = type === "application/json" ? fields.typeOf(schema) : code(type)
      return heading(
        `Answer ${status}: ${type === "no body" ? type : what}`,
        `${fields.within(schema)}${example === undefined ? "" : block(pretty(example))}`
      )
    })
    .join("")

const parametersOf = (described: Json, fields: Fields): string => {
  const entries = listIn(described, "parameters").map((one) => {
    const needed = one["required"] === true ? ", <strong>required</strong>" : ""
    return `<dt>${code(one["name"])} <small>${one["in"]}, ${fields.typeOf(recordIn(one, "schema"))}${needed}</small></dt>
<dd>${withCode(textIn(one, "description"))}</dd>`
  })
  return entries.length === 0 ? "" : `<dl class="fields">\n${entries.join("\n")}\n</dl>`
}

const bodyOf = (described: Json, fields: Fields): string => {
  const content = recordIn(described, "requestBody", "content")
  const types = Object.keys(content).filter((type) => type !== "application/json")
  const schema = recordIn(Object.values(content).at(-1), "schema")
  return `${types.length === 0 ? "" : `<p>${types.map(code).join(", ")}</p>\n`}${fields.within(schema)}`
}

interface Described {
  readonly method: string
  readonly path: string
  readonly operation: Json
  /** Its place on its tag's page. */
  readonly anchor: string
}

const operationSection = ({ anchor, method, operation, path }: Described, answers: Fields): Section => {
  const fields = new Fields(answers.schemas, false)
  const responses = recordIn(operation, "responses")
  return section(
    anchor,
    2,
    textIn(operation, "summary"),
    `<p class="route"><code><strong>${method}</strong> ${breakable(path)}</code></p>
${paragraph(operation)}${heading("Parameters", parametersOf(operation, fields))}${heading("Body", bodyOf(operation, fields))}<h4>Request</h4>
${block(curlOf(method, path, operation))}
${answersOf(responses, answers)}${errorsOf(responses)}`
  )
}

/** The objects in a page's answers, and those within them. */
const objectSections = (answers: Fields): ReadonlyArray<Section> => {
  const sections: Array<Section> = []
  // Grows while objects are shown that link to others
  for (const name of answers.linked) {
    const schema = recordIn(answers.schemas, name)
    sections.push(section(name, 3, name, `${paragraph(schema)}${answers.listOf(schema)}`))
  }
  return sections
}

const eventSections = (webhooks: Json, answers: Fields): ReadonlyArray<Section> => {
  const posts = Object.entries(webhooks).map(([type, item]) => [type, recordIn(item, "post")] as const)
  const [, first = {}] = posts[0] ?? []
  const responses = Object.entries(recordIn(first, "responses")).map(
    ([status, response]) => `<dt>${code(status)}</dt>\n<dd>${withCode(textIn(recordIn(response), "description"))}</dd>`
  )
  const request = section(
    "request",
    2,
    "The request, and your answer",
    `<p>Each event is a <code>POST</code> with these headers, and answers mean the same for all types.</p>
${heading("Headers", parametersOf(first, answers))}${heading("Answers", `<dl class="fields">\n${responses.join("\n")}\n</dl>`)}`
  )
  const events = posts.map(([type, post]) => {
    const media = recordIn(post, "requestBody", "content", "application/json")
    const { $ref } = recordIn(media, "schema")
    const envelope = recordIn(answers.schemas, String($ref).slice(componentPrefix.length))
    return section(type, 2, type, `${paragraph(post)}${answers.listOf(envelope)}\n${block(pretty(exampleOf(media)))}`)
  })
  return [request, ...events]
}

const title = (text: string, about: string): Section => ({
  anchor: "",
  depth: 1,
  heading: text,
  html: `<h1>${escaped(text)}</h1>\n<p>${withCode(about)}</p>\n`
})

const routeRow = (path: string, { anchor, method, operation, path: route }: Described): string => {
  const key = listIn(operation, "parameters").find(({ name }) => name === "idempotency-key")
  const idempotency = key === undefined ? "" : key["required"] === true ? "required" : "optional"
  const needs = operation["x-required-permission"]
  return `<tr><td><a href="${path}#${anchor}">${escaped(textIn(operation, "summary"))}</a><br><code>${method} ${breakable(route)}</code></td><td>${needs === undefined ? "" : code(needs)}</td><td>${idempotency}</td></tr>`
}

const firstPage = (introduction: string, tags: ReadonlyArray<TagOperations>): ReferencePage => ({
  path: documentPaths.reference,
  title: "API reference",
  sections: [
    title(
      "API reference",
      `Every operation, field by field. The same as an OpenAPI document: \`${documentPaths.openApi}\`.`
    ),
    ...renderSections(introduction, (href) => href),
    ...tags.map(({ about, operations, path, tag }) => {
      const rows = operations.map((operation) => routeRow(path, operation))
      return section(
        path.slice(documentPaths.reference.length + 1),
        2,
        tag,
        `<p>${withCode(about)}. <a href="${path}">Field by field</a></p>
${
  rows.length === 0
    ? ""
    : `<div class="table" tabindex="0"><table><thead><tr><th>Operation</th><th>Permission</th><th>Idempotency-Key</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table></div>`
}`
      )
    })
  ]
})

interface TagOperations {
  readonly tag: string
  readonly about: string
  readonly path: string
  readonly operations: ReadonlyArray<Described>
}

const tagsOf = (document: Json): ReadonlyArray<TagOperations> => {
  const described = Object.entries(recordIn(document, "paths")).flatMap(([path, methods]) =>
    Object.entries(recordIn(methods)).map(([method, value]): Described => {
      const operation = recordIn(value)
      const anchor = textIn(operation, "operationId").replace(/^.*\./, "")
      return { method: method.toUpperCase(), path, operation, anchor }
    })
  )
  return listIn(document, "tags").map((one) => {
    const tag = textIn(one, "name")
    return {
      tag,
      about: textIn(one, "description"),
      path: pathOfTag(tag),
      operations: described.filter(({ operation }) => [operation["tags"]].flat().includes(tag))
    }
  })
}

/** The pages of an OpenAPI document, each to be rendered when it is called: the first one, and one for each tag. */
export const referencePages = (document: Json): ReadonlyArray<() => ReferencePage> => {
  const tags = tagsOf(document)
  const schemas = recordIn(document, "components", "schemas")
  const pageOf = ({ about, operations, path, tag }: TagOperations): ReferencePage => {
    const answers = new Fields(schemas, true)
    const main =
      tag === eventsTag
        ? eventSections(recordIn(document, "webhooks"), answers)
        : operations.map((operation) => operationSection(operation, answers))
    return { path, title: tag, sections: [title(tag, `${about}.`), ...main, ...objectSections(answers)] }
  }
  return [
    () => firstPage(textIn(recordIn(document, "info"), "description"), tags),
    ...tags.map((tag) => () => pageOf(tag))
  ]
}
