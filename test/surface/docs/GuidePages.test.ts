import { Effect } from "effect"
import { guidePaths } from "../../../src/surface/docs/GuidePages.ts"
import { addSections, emptyIndex, search } from "../../../src/surface/docs/GuideSearch.ts"
import { guideNames } from "../../../src/surface/docs/Guides.ts"
import { plainText, renderSections } from "../../../src/surface/docs/Markdown.ts"
import { onService, onSharedService, sendRequest, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

describe("a guide's Markdown", () => {
  const render = (markdown: string) =>
    renderSections(markdown, (href) => (href.startsWith("http") ? href : undefined))
      .map(({ html }) => html)
      .join("")

  it("is cut at its headings, each with the place that GitHub gives it", () => {
    const sections = renderSections("Before\n\n# One `two` & *three*\n\nText\n\n## Can't be read\n", () => undefined)
    expect(sections.map(({ anchor, depth, heading }) => [anchor, depth, heading])).toEqual([
      ["", 0, ""],
      ["one-two--three", 1, "One two & three"],
      ["cant-be-read", 2, "Can't be read"]
    ])
  })

  it("shows text as text, and links only to what is served", () => {
    expect(render("`<b>` & <https://example.com/?a=1&b=2> [code](../Service.ts)")).toBe(
      '<p><code>&lt;b&gt;</code> &amp; <a href="https://example.com/?a=1&amp;b=2">https://example.com/?a=1&amp;b=2</a> code</p>\n'
    )
    expect(render('```html\n<script>"x"</script>\n```')).toContain("&lt;script&gt;&quot;x&quot;&lt;/script&gt;")
  })

  it("has no HTML but places to link to and comments", () => {
    expect(render('<a id="3.2"></a>**3.2** Text\n\n<!-- note -->\n')).toBe(
      '<p><a id="3.2"></a><strong>3.2</strong> Text</p>\n'
    )
    for (const bad of ["<b>x</b>", '<a id="x" onclick="y">', "<script>x</script>", "<!-- a --><img src=x>"]) {
      expect(() => render(`Text ${bad}`), bad).toThrow("HTML")
    }
  })

  it("breaks long names in tables between their parts alone", () => {
    expect(render("| a |\n| --- |\n| `a_b.c/d` and e_f |\n")).toContain("<code>a_<wbr>b.<wbr>c/<wbr>d</code> and e_f")
  })

  it("is text again without its tags", () => {
    expect(plainText("<p>a <b>&lt;b&gt;</b> &amp;amp; &#39;c&#39; &nbsp;</p>")).toBe("a <b> &amp; 'c' &nbsp;")
  })
})

describe("the search", () => {
  const section = (heading: string, text: string) => ({
    anchor: heading.toLowerCase(),
    heading,
    html: `<h2>${heading}</h2><p>${text}</p>`,
    path: "/docs/one",
    title: "One"
  })
  const index = emptyIndex()
  addSections(index, [
    section("Secrets", "how to rotate"),
    section("Other", "a secret that you rotate; `validation_failed`")
  ])
  addSections(index, [section("Third", "nothing")])
  const found = (query: string) => search(index, query).map(({ heading }) => heading)

  it("finds sections that have every word or begin of a word, headings first", () => {
    expect(found("secret rot")).toEqual(["Secrets", "Other"])
    expect(found("failed")).toEqual(["Other"])
    expect(found("VALIDATION_FAILED")).toEqual(["Other"])
    expect(found("secret nothing")).toEqual([])
    expect(found("a")).toEqual([])
    expect(found("")).toEqual([])
    expect(search(index, "rotate")[1]).toEqual({
      href: "/docs/one#other",
      title: "One",
      heading: "Other",
      excerpt: "a secret that you rotate; `validation_failed`"
    })
  })

  it("looks at the beginning of a long query alone", () => {
    expect(found(`secret ${"x".repeat(1e6)}`)).toEqual([])
    expect(found(`secret ${" ".repeat(1e6)}nothing`)).toEqual(["Secrets", "Other"])
  })
})

onSharedService("the guides", (it) => {
  it.effect("are found by the words that users of other services type", function* () {
    const missed: Array<string> = []
    for (const [query, guide] of [
      ["success_url", "accounts-and-people|going-live|getting-started"],
      ["cancel_url", "accounts-and-people|going-live|getting-started"],
      ["go live", "going-live"],
      ["production checklist", "going-live"],
      ["test card", "getting-started"],
      ["resend", "endpoints"],
      ["redeliver", "getting-started"],
      ["replay", "endpoints|reference/event-replays"],
      ["webhook secret", "getting-started|receiving-events|endpoints|verifying"],
      ["rotate secret", "endpoints"],
      ["stripe listen", "getting-started"],
      ["trigger", "receiving-events|local-provider|getting-started"],
      ["restricted key", "getting-started"],
      ["scopes", "getting-started"],
      ["dashboard", "getting-started|console|accounts-and-people|telemetry"],
      ["portal", "getting-started"],
      ["ip allowlist", "getting-started"],
      ["pagination", "getting-started"],
      ["rate limit", "api|errors"],
      ["idempotency key", "api"],
      ["retry schedule", "receiving-events|endpoints|getting-started"],
      ["dead letter", "getting-started"],
      ["test mode", "getting-started"],
      ["tolerance", "receiving-events|verifying"],
      ["duplicate events", "receiving-events"],
      ["refund failed", "receiving-events|events"],
      ["success_url", "reference/checkout-sessions"],
      ["checkout/sessions", "reference/checkout-sessions"],
      ["expire a session", "reference/checkout-sessions"],
      ["max quantity", "reference/checkout-pages"],
      ["re-send delivery", "endpoints|reference/deliveries"],
      ["re-send a failed delivery", "reference/deliveries"]
    ] as const) {
      const { text } = yield* sendRequest("GET", `/docs/search?q=${encodeURIComponent(query)}`)
      const found = [...(text.split('<ol class="found">')[1] ?? "").matchAll(/<li><a href="\/docs\/([a-z/-]+)/g)]
      const first = found.slice(0, 5).map(([, name]) => name)
      if (!first.some((name) => guide.split("|").includes(name ?? ""))) missed.push(`${query}: ${first.join(", ")}`)
    }
    expect(missed).toEqual([])
  })

  it.effect("are served without a credential or a script, and every link of theirs leads somewhere", function* () {
    const { baseUrl, request } = yield* TestService
    const pages = new Map<string, string>()
    const read = Effect.fnUntraced(function* (path: string) {
      const known = pages.get(path)
      if (known !== undefined) return known
      const { headers, status, text } = yield* request("GET", path)
      expect([path, status]).toEqual([path, 200])
      if (guidePaths.includes(path) && !path.endsWith(".css")) {
        expect(headers.get("content-type"), path).toBe("text/html; charset=utf-8")
        expect(headers.get("content-security-policy"), path).toMatch(/^default-src 'none'; style-src 'self'/)
        expect(text, path).not.toMatch(/<script|\son\w+=|style=/i)
      }
      pages.set(path, text)
      return text
    })
    for (const path of guidePaths) {
      for (const [, href = ""] of (yield* read(path)).matchAll(/<a [^>]*href="([^"]+)"/g)) {
        const { hash, origin, pathname } = new URL(href, `${baseUrl}${path}`)
        if (origin !== baseUrl) continue
        const target = yield* read(pathname)
        if (hash !== "") expect(target, `${path}: ${href}`).toContain(`id="${decodeURIComponent(hash.slice(1))}"`)
      }
    }
    expect(pages.size).toBeGreaterThan(guideNames.length)
  })

  it.effect("are not found under other names", function* () {
    for (const path of [
      "/docs/nothing",
      "/docs/errors/x",
      "/docs/%2e%2e/package.json",
      "/docs/Guides.ts",
      "/docs/api.md"
    ]) {
      const { json, status } = yield* sendRequest("GET", path)
      expect([path, status, json["code"]]).toEqual([path, 404, "resource_not_found"])
    }
  })

  it.effect("are searched, whatever is asked", function* () {
    const ask = (query: string) => sendRequest("GET", `/docs/search${query}`)
    expect((yield* ask("?q=rotate+the+secret")).text).toContain('href="/docs/endpoints#rotate-the-secret"')
    expect((yield* ask("?q=validation_failed")).text).toContain('href="/docs/errors#validation_failed"')
    expect((yield* ask("?q=zzzzzz")).text).toContain("Nothing was found")
    const hostile = ['<script>alert("x")</script>', "' onfocus='x", "\0\u2028%", "ab ".repeat(1500), ".*+?^{}()|[]\\"]
    for (const query of hostile) {
      const { status, text } = yield* ask(`?q=${encodeURIComponent(query)}`)
      expect([query.slice(0, 20), status]).toEqual([query.slice(0, 20), 200])
      expect(text).not.toMatch(/<script|alert\("| onfocus='/)
      expect(text.length).toBeLessThan(60_000)
    }
    for (const query of ["", "?", "?q", "?q=", "?other=1", "?q=a&q=b", "?q=%zz", "?q=%FF"]) {
      expect([query, (yield* ask(query)).status]).toEqual([query, 200])
    }
  })
})

onService({ roles: { api: true, worker: false } })("the first search of the guides", (it) => {
  it.effect("holds up other requests for as long as one guide takes, not all of them", function* () {
    yield* sendRequest("GET", "/health/live")
    const answered: Array<string> = []
    const ask = (path: string) =>
      Effect.map(sendRequest("GET", path), ({ status }) => {
        expect(status).toBe(200)
        answered.push(path)
      })
    yield* Effect.all([ask("/docs/search?q=webhook"), ask("/health/live")], { concurrency: 2 })
    expect(answered).toEqual(["/health/live", "/docs/search?q=webhook"])
  })
})
