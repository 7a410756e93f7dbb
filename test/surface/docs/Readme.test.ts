import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { cli } from "../../../src/app/cli/Cli.ts"
import { understand } from "../../../src/app/cli/CommandLine.ts"
import { guideFile, guideNames } from "../../../src/surface/docs/Guides.ts"
import { outputOf } from "../../harness/Output.ts"
import { onSharedServiceWithWorker, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

// What the documents say can be done can be done

const root = fileURLToPath(new URL("../../../", import.meta.url))
const text = (file: string) => readFileSync(join(root, file), "utf8")
const guides = ["guides", "maintaining"].flatMap((folder) =>
  readdirSync(join(root, "src/docs", folder)).map((file) => `src/docs/${folder}/${file}`)
)
const documents = ["README.md", "CHANGELOG.md", "test/bench/RESULTS.md", ...guides]

const withoutCode = (markdown: string) => markdown.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "")

/** As GitHub names a heading's place. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

const headingsOf = (file: string) =>
  [...withoutCode(text(file)).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading)

const anchorsOf = (file: string) =>
  new Set([
    ...headingsOf(file).map(anchorOf),
    ...[...withoutCode(text(file)).matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id)
  ])

const blocksOf = (file: string, fence: RegExp) =>
  [...text(file).matchAll(/^ *```([^\n]*)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, info = ""]) => fence.test(info))
    .map(([, , code = ""]) => code)

describe.each(documents)("%s", (file) => {
  it("links to what is there", () => {
    const links = [...withoutCode(text(file)).matchAll(/\]\(([^)]+)\)/g)].map(([, link = ""]) => link)
    for (const link of links.filter((one) => !/^https?:/.test(one))) {
      const [path = "", anchor] = link.split("#")
      const target = path === "" ? file : join(dirname(file), path)
      expect(existsSync(join(root, target)), link).toBe(true)
      if (anchor !== undefined) expect(anchorsOf(target).has(anchor), link).toBe(true)
    }
  })

  it("names files that there are", () => {
    // What is left open, as in `src/payments/<resource>/Api.ts`, is nobody's name
    const files = [...text(file).matchAll(/`((?:src|test|\.ci)\/[\w./-]*)`/g)].map(([, name = ""]) => name)
    for (const name of files) expect(existsSync(join(root, name)), name).toBe(true)
  })

  it("names scripts and commands that there are, with options that they take", () => {
    const { scripts } = Schema.decodeUnknownSync(
      Schema.parseJson(Schema.Struct({ scripts: Schema.Record({ key: Schema.String, value: Schema.String }) }))
    )(text("package.json"))
    for (const line of blocksOf(file, /^(sh|text)\b/).flatMap((code) => code.split("\n"))) {
      const [, script] = /\bnpm run ([a-z:-]+)/.exec(line) ?? []
      if (script !== undefined) expect(Object.keys(scripts), line).toContain(script)
      const [, args] = /(?:npm run cli --|^ *connected-payments) (.*)/.exec(line) ?? []
      if (args === undefined || args.startsWith("<")) continue
      // Quoted values are one word; what is after a pipe, or two blanks and a sign, is for the shell
      const words = (args.replace(/ +[#|].*$/, "").match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((word) =>
        word.replaceAll(/^['"]|['"]$/g, "")
      )
      expect(understand(cli.commands, words), line).toMatchObject({ right: { _tag: "Command" } })
    }
  })

  it("is written plainly", () => {
    expect(withoutCode(text(file))).not.toMatch(/—|TODO|\/work\//)
  })
})

describe("the README", () => {
  it("is short, and leads to every guide, by the title that it has", () => {
    expect(text("README.md").split("\n").length).toBeLessThanOrEqual(250)
    const links = new Map(
      [...text("README.md").matchAll(/\[([^\]]+)\]\((src\/docs\/[^)]+)\)/g)].map(([, title, file]) => [file, title])
    )
    expect(Object.fromEntries(links)).toEqual(Object.fromEntries(guides.map((file) => [file, headingsOf(file)[0]])))
  })
})

describe("the guides", () => {
  it("are those of the contents", () => {
    expect(guideNames.map(guideFile).toSorted()).toEqual(guides.toSorted())
    expect(new Set(guideNames).size).toBe(guideNames.length)
  })

  it.each(guides)("%s has a title, says what it answers, names no heading twice and is not too long", (file) => {
    expect(text(file)).toMatch(/^# .+\n\n[A-Z]/)
    const headings = headingsOf(file).map(anchorOf)
    expect(headings.length).toBe(new Set(headings).size)
    // The contract is looked up, not read
    expect(text(file).split("\n").length).toBeLessThanOrEqual(file.endsWith("/contract.md") ? 550 : 400)
  })
})

it("the decisions are records of at most 15 lines, each with its four parts, on pages that the first one lists", () => {
  const pages = guides.filter((file) => file.includes("/decisions"))
  for (const page of pages.filter((file) => !file.endsWith("/decisions.md"))) {
    expect(text("src/docs/maintaining/decisions.md")).toContain(`(${basename(page)})`)
  }
  for (const record of pages.flatMap((page) => text(page).split(/^(?=#)/m)).filter((part) => part.startsWith("###"))) {
    expect(record.trim().split("\n").length, record).toBeLessThanOrEqual(15)
    expect([...record.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, part]) => part).join(), record).toBe(
      "Context,Decision,Figure,Look again"
    )
  }
})

describe("the change log", () => {
  it("has the form of Keep a Changelog", () => {
    const headings = [...text("CHANGELOG.md").matchAll(/^##+ (.*)$/gm)].map(([, heading = ""]) => heading)
    const version = Schema.decodeUnknownSync(Schema.parseJson(Schema.Struct({ version: Schema.String })))(
      text("package.json")
    ).version
    // What is not released yet, or the version that the package has
    expect(headings[0]).toMatch(new RegExp(`^\\[(Unreleased|${version.replaceAll(".", "\\.")})\\]`))
    for (const heading of headings) {
      expect(heading).toMatch(
        /^(\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d|Added|Changed|Deprecated|Removed|Fixed|Security)$/
      )
    }
  })
})

const isThere = (file: string) => spawnSync(file, ["-c", "true"], { stdio: "ignore" }).status === 0
const hasCurl = spawnSync("curl", ["--version"], { stdio: "ignore" }).status === 0

/** Shells that people paste into, each as it stops at a failure. */
const shells = [
  ["sh", "-euc"],
  ["bash", "-euo", "pipefail", "-c"],
  ["zsh", "-euo", "pipefail", "-c"]
] as const

onSharedServiceWithWorker("the first requests", (it) => {
  it.scoped.each(shells.filter(([file]) => hasCurl && isThere(file)))(
    "do what they say in %s, and twice the same",
    function* ([file, ...args]) {
      const { baseUrl, organization, sql } = yield* TestService
      const directory = mkdtempSync(join(tmpdir(), "connected-payments-readme-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(directory, { recursive: true, force: true })))
      mkdirSync(join(directory, ".data"))
      const local = { baseUrl, organizationId: organization.id, apiKey: organization.testKey }
      writeFileSync(join(directory, ".data/local.json"), JSON.stringify(local))
      const [script = ""] = blocksOf("src/docs/guides/getting-started.md", /^sh requests$/)
      const run = Effect.promise(async () => {
        const child = spawn(file, [...args, script], {
          cwd: directory,
          env: { PATH: process.env["PATH"] ?? "" }
        })
        const output = outputOf(child)
        const [code] = await once(child, "close")
        expect(code, output.stdout + output.stderr).toBe(0)
        return output.stdout.trim().split("\n")
      })
      const [secret, url, list = ""] = yield* run
      expect(secret).toMatch(/^whsec_/)
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\//)
      expect(JSON.parse(list)).toMatchObject({ data: [] })
      expect((yield* run).slice(0, 2)).toEqual([secret, url])
      // What curls of before 7.76 and 7.82 lack, and what shells that are not bash do
      expect(script).not.toMatch(/--fail-with-body|--json|\$\{@|\[\[| # /)
      const [made] = yield* sql<{ count: number }>`
        SELECT count(*)::int AS count FROM payments.endpoints
        WHERE organization_id = ${organization.id} AND environment = 'sandbox'`
      expect(made?.count).toBe(1)
    }
  )
})
