import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { inject } from "vitest"
import { EventType } from "../../../src/events/Catalog.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import { documentPaths, referencePages, referencePaths } from "../../../src/surface/docs/ApiReference.ts"
import { plainText } from "../../../src/surface/docs/Markdown.ts"
import { builtOpenApi, openApiText } from "../../../src/surface/docs/OpenApiText.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const text = await Effect.runPromise(openApiText ?? Effect.dieMessage("The examples are not here"))
const pages = referencePages(JSON.parse(text)).map((render) => render())
const [first, ...others] = pages
const sections = others.flatMap((page) => page.sections.map((section) => ({ ...section, page })))
const textOf = (path: string, anchor: string) =>
  plainText(sections.find((one) => one.page.path === path && one.anchor === anchor)?.html ?? "")

/** The first command of a section. */
const commandIn = (html: string): string => plainText(/<pre[^>]*>([\s\S]*?)<\/pre>/.exec(html)?.[1] ?? "")

describe("the API reference", () => {
  it("has a page for each tag, small enough to be read at once", () => {
    expect(pages.map(({ path }) => path)).toEqual([documentPaths.reference, ...referencePaths.values()])
    for (const page of pages) {
      const html = page.sections.map((section) => section.html).join("")
      expect(html.length, page.path).toBeLessThan(100_000)
      expect(html.match(/<[a-z]/g)?.length, page.path).toBeLessThan(2500)
      expect(html, page.path).not.toMatch(/undefined|\[object|<p><\/p>/)
    }
  })

  it("has every operation once, with its permission, on the first page and on its own", () => {
    const list = plainText(first?.sections.map(({ html }) => html).join("") ?? "")
    for (const { method, path, permission } of operations) {
      const route = `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`
      const found = sections.filter(({ html }) =>
        plainText(/class="route">.*/.exec(html)?.[0] ?? "").endsWith(`>${route}`)
      )
      expect([route, found.length]).toEqual([route, 1])
      if (permission !== undefined) expect(plainText(found[0]?.html ?? ""), route).toContain(permission)
      expect(list, route).toContain(`${route}${permission ?? ""}`)
    }
  })

  it("has every event with its fields and an example", () => {
    for (const type of EventType.literals) {
      expect(textOf("/docs/reference/webhooks", type), type).toContain(`"type": "${type}"`)
    }
    expect(textOf("/docs/reference/webhooks", "PaymentSucceededData")).toContain("amount_received integer")
  })

  it("says of each field its type, its bounds and what it means, also within other fields", () => {
    const create = textOf("/docs/reference/checkout-sessions", "create")
    expect(create).toContain("idempotency-key header, string, 8 to 255 characters, required")
    expect(create).toContain("line_items list of object, 1 to 100 items, required")
    expect(create).toContain("quantity integer, 1 to 999999, required\nHow many units of the price are sold")
    expect(create).toContain("Answer 200: CheckoutSession")
    expect(textOf("/docs/reference/checkout-sessions", "CheckoutSession")).toContain(
      "client_reference_id string or null"
    )
    expect(textOf("/docs/reference/product-images", "upload")).toContain("multipart/form-data")
  })

  it("says which errors an operation may return, and where they are described", () => {
    const refund = sections.find(({ anchor, page }) => page.title === "Refunds" && anchor === "create")?.html
    expect(refund).toContain('<a href="/docs/errors#provider_timeout"><code>provider_timeout</code></a>')
    expect(refund).toContain('<a href="/docs/errors#validation_failed">')
    const created = sections.find(({ anchor, page }) => page.title === "Endpoints" && anchor === "create")?.html
    expect(created).toContain("#destination_rejected")
  })

  it("has texts of the document as text, never as markup", () => {
    const hostile = `<img src=x> & "q" 'r'`
    const document = {
      info: { description: "Text" },
      tags: [{ name: "Things", description: hostile }],
      paths: {
        "/x/{id}": {
          post: {
            operationId: "things.make",
            tags: ["Things"],
            summary: hostile,
            description: hostile,
            parameters: [
              { name: hostile, in: "query", description: hostile, example: hostile, schema: { enum: [hostile] } }
            ],
            requestBody: { content: { "application/json": { example: { [hostile]: hostile }, schema: {} } } },
            responses: {}
          }
        }
      }
    }
    for (const render of referencePages(document)) {
      for (const { html } of render().sections) expect(html).not.toContain("<img")
    }
    const html = referencePages(document)[1]?.().sections.map((section) => section.html) ?? []
    expect(commandIn(html.join(""))).toContain(`"<img src=x> & \\"q\\" '\\''r'\\''"`)
  })
})

describe("the OpenAPI document", () => {
  it("is a file of a build, the same as the sources create, and is not kept beside the sources", async () => {
    expect(await readFile(join(inject("buildDirectory"), "src", builtOpenApi), "utf8")).toBe(text)
    expect(existsSync(new URL(`../../../src/${builtOpenApi}`, import.meta.url))).toBe(false)
  })
})

onSharedService("the commands of the API reference", (it) => {
  it.effect("work as they are, with the guides' variables", function* () {
    const { baseUrl, organization } = yield* TestService
    const run = (anchor: string) => {
      const command = commandIn(
        sections.find((one) => one.page.title === "Products" && one.anchor === anchor)?.html ?? ""
      )
      const env = { ...process.env, URL: baseUrl, ORGANIZATION: organization.id, KEY: organization.testKey }
      return Effect.promise(async () =>
        JSON.parse((await promisify(execFile)("sh", ["-c", `${command} -s`], { env })).stdout)
      )
    }
    const created = yield* run("create")
    expect(created).toMatchObject({ object: "product" })
    expect(yield* run("list")).toMatchObject({ data: [{ id: created.id }] })
  })
})
