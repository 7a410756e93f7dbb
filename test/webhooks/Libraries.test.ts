import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { body, previousSecret, secret, signNow } from "./Deliveries.ts"
import { answersOf, installed, type Program } from "./Programs.ts"

// The lines that the guide gives for the provider's own libraries: run with the library where the machine has it.
// Nothing is downloaded

const folder = fileURLToPath(new URL("../examples/webhooks/libraries/", import.meta.url))
const guide = readFileSync(new URL("../../src/docs/guides/verifying.md", import.meta.url), "utf8")
const builds = mkdtempSync(join(tmpdir(), "connected-payments-libraries-"))
afterAll(() => rmSync(builds, { recursive: true, force: true }))

/** Its name is that of its row in the guide. */
interface Library extends Program {
  readonly file: string
}

const autoload = join(process.env["COMPOSER_HOME"] ?? join(homedir(), ".config/composer"), "vendor/autoload.php")

const libraries: ReadonlyArray<Library> = [
  {
    name: "Node `stripe`",
    file: "stripe.mjs",
    probe: [process.execPath, "--version"],
    run: [process.execPath, join(folder, "stripe.mjs")]
  },
  {
    name: "Python `stripe`",
    file: "stripe_library.py",
    probe: ["python3", "-c", "import stripe"],
    run: ["python3", "-B", join(folder, "stripe_library.py")]
  },
  {
    name: "Go `stripe-go`",
    file: "go/main.go",
    probe: ["go", "list", "-m", "github.com/stripe/stripe-go/v84@v84.4.1"],
    build: ["go", "build", "-C", join(builds, "go"), "-o", join(builds, "verify"), "."],
    run: [join(builds, "verify")]
  },
  {
    name: "Ruby `stripe`",
    file: "stripe_library.rb",
    probe: ["ruby", "-e", 'require "stripe"'],
    run: ["ruby", join(folder, "stripe_library.rb")]
  },
  {
    name: "PHP `stripe-php`",
    file: "stripe_library.php",
    probe: [
      "php",
      "-r",
      `require ${JSON.stringify(autoload)}; exit(class_exists('Stripe\\\\WebhookSignature') ? 0 : 1);`
    ],
    run: ["php", join(folder, "stripe_library.php"), autoload]
  }
]

/** Go takes modules from its cache, and asks nobody. */
const env = { ...process.env, GOFLAGS: "-mod=mod", GOPROXY: "off", GOSUMDB: "off" }

const cases = () => {
  const header = signNow(body)
  const [time = "", genuine = ""] = header.split(",")
  const old = signNow(body, previousSecret).split(",")[1] ?? ""
  const good = { body, header, genuine: true }
  return [
    { ...good, what: "as it was sent" },
    { ...good, what: "signed with both secrets", header: `${time},${genuine},${old}` },
    { ...good, what: "signed with both secrets, in the other order", header: `${time},${old},${genuine}` },
    { ...good, what: "signed four minutes ago", header: signNow(body, secret, -240) },
    { ...good, genuine: false, what: "with a letter changed", body: body.replace("pi_1", "pi_2") },
    { ...good, genuine: false, what: "under another secret", header: `${time},${old}` },
    { ...good, genuine: false, what: "signed seven minutes ago", header: signNow(body, secret, -420) }
  ]
}

describe.each(libraries)("the line for $name", (library) => {
  it("stands in the guide's table, and is what the tests run", () => {
    const row = guide.split("\n").find((line) => line.startsWith(`| ${library.name} |`))
    const [, line = ""] = /^\| [^|]+ \| `([^`]+)` \|/.exec(row ?? "") ?? []
    expect(line).not.toBe("")
    expect(readFileSync(join(folder, library.file), "utf8")).toContain(line)
  })

  const { here, note } = installed(library, env)
  it.skipIf(!here)(
    `accepts what is genuine and refuses what is altered, foreign or old${note}`,
    async () => {
      cpSync(join(folder, "go"), join(builds, "go"), { recursive: true })
      const deliveries = cases()
      const answers = await answersOf(
        library,
        deliveries.map(({ body, header }) => ({
          body: Buffer.from(body).toString("base64"),
          header,
          secrets: [secret]
        })),
        env
      )
      expect(deliveries.map(({ what }, index) => [what, answers[index]])).toEqual(
        deliveries.map(({ genuine, what }) => [what, String(genuine)])
      )
    },
    300_000
  )
})
