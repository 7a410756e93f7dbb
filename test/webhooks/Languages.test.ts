import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { verifyWebhook, WebhookVerificationError } from "../../src/webhooks/index.ts"
import { body, previousSecret, secret, signNow } from "./Deliveries.ts"
import { answersOf, installed, type Program } from "./Programs.ts"

// The verifiers that the guide shows for other languages: they are these files, and they judge as the kit does

const folder = fileURLToPath(new URL("../examples/webhooks/", import.meta.url))
const guide = readFileSync(new URL("../../src/docs/guides/verifying.md", import.meta.url), "utf8")

const builds = mkdtempSync(join(tmpdir(), "connected-payments-languages-"))
afterAll(() => rmSync(builds, { recursive: true, force: true }))

interface Language extends Program {
  /** As the guide's code blocks call it. */
  readonly fence: string
  readonly file: string
}

const binary = join(builds, "verify")

const languages: ReadonlyArray<Language> = [
  {
    name: "Python",
    fence: "python",
    file: "python/verify_webhook.py",
    probe: ["python3", "--version"],
    run: ["python3", "-B", join(folder, "python/main.py")]
  },
  {
    name: "Go",
    fence: "go",
    file: "go/verify_webhook.go",
    probe: ["go", "version"],
    build: ["go", "build", "-o", binary, join(folder, "go/main.go"), join(folder, "go/verify_webhook.go")],
    run: [binary]
  },
  {
    name: "Ruby",
    fence: "ruby",
    file: "ruby/verify_webhook.rb",
    probe: ["ruby", "--version"],
    run: ["ruby", join(folder, "ruby/main.rb")]
  },
  {
    name: "PHP",
    fence: "php",
    file: "php/verify_webhook.php",
    probe: ["php", "--version"],
    run: ["php", join(folder, "php/main.php")]
  }
]

interface Delivery {
  readonly what: string
  readonly body: string | Uint8Array
  readonly header: string
  readonly secrets: ReadonlyArray<string>
  /** `error`: the secret can't be right, which no answer to the delivery must hide. */
  readonly genuine: boolean | "error"
}

/** What each verifier must accept and refuse. The times are far enough from the bounds for a slow machine. */
const deliveries = (): ReadonlyArray<Delivery> => {
  const header = signNow(body)
  const [time = "", genuine = ""] = header.split(",")
  const old = signNow(body, previousSecret).split(",")[1] ?? ""
  const binary = Uint8Array.from([0xff, 0x00, 0x7b, 0x0d, 0x0a])
  const good = { body, header, secrets: [secret], genuine: true }
  const bad = { ...good, genuine: false }
  const withHeader = (header: string) => ({ ...bad, header })
  return [
    { ...good, what: "as it was sent" },
    { ...good, what: "with text beyond ASCII", body: "ação €", header: signNow("ação €") },
    { ...good, what: "of any bytes", body: binary, header: signNow(binary) },
    { ...good, what: "with an empty body", body: "", header: signNow("") },
    { ...good, what: "signed with both secrets, under the new one", header: `${time},${genuine},${old}` },
    { ...good, what: "signed with both secrets, in the other order", header: `${time},${old},${genuine}` },
    { ...good, what: "under one of several secrets", secrets: [previousSecret, secret] },
    {
      ...good,
      what: "with the previous secret, which is still kept",
      header: `${time},${old}`,
      secrets: [secret, previousSecret]
    },
    { ...good, what: "with schemes of the future", header: `${time},v2=abc,${genuine},x` },
    { ...good, what: "signed four minutes ago", header: signNow(body, secret, -240) },
    { ...good, what: "signed by a clock four minutes ahead", header: signNow(body, secret, 240) },
    { ...bad, what: "with a byte more", body: `${body} ` },
    { ...bad, what: "with a letter changed", body: body.replace("pi_1", "pi_2") },
    { ...bad, what: "under another secret", secrets: [previousSecret] },
    { ...bad, what: "signed seven minutes ago", header: signNow(body, secret, -420) },
    { ...bad, what: "signed by a clock seven minutes ahead", header: signNow(body, secret, 420) },
    { ...withHeader(`${time},${old}`), what: "signed with the previous secret, which is gone" },
    { ...withHeader(""), what: "without a header" },
    { ...withHeader(genuine), what: "without a time" },
    { ...withHeader(time), what: "without a signature" },
    { ...withHeader(`${time},${time},${genuine}`), what: "with two times" },
    { ...withHeader(`${time},v1=`), what: "with an empty signature" },
    { ...withHeader(`${time},v1=${"0".repeat(64)}`), what: "with a made-up signature" },
    { ...withHeader(`${time},v0=${genuine.slice(3)}`), what: "with the signature under another scheme" },
    { ...withHeader(`${time},v1=${"é".repeat(32)}`), what: "with a signature beyond ASCII" },
    { ...withHeader(`t=abc,${genuine}`), what: "with a time that is no number" },
    { ...withHeader(`t=${"9".repeat(40)},${genuine}`), what: "with a time beyond any number" },
    { ...withHeader(`t=٣,${genuine}`), what: "with a time in other digits" },
    {
      ...withHeader(signNow(body, "")),
      what: "signed with an empty secret, where a setting is missing",
      secrets: ["", ""]
    },
    ...[`${secret}\n`, ` ${secret}`, `${secret}\r\n`, `"${secret}"`, `'${secret}'`].map(
      (wrong) =>
        ({ ...good, what: `under ${JSON.stringify(wrong)}`, secrets: [secret, wrong], genuine: "error" }) as const
    )
  ]
}

const byTheKit = ({ body, header, secrets }: Delivery): Delivery["genuine"] => {
  try {
    verifyWebhook({ body, header, secret: secrets })
    return true
  } catch (error) {
    if (error instanceof TypeError) return secrets.includes("") ? false : "error"
    // The kit reads the event too, of which these bodies may be none
    return error instanceof WebhookVerificationError && error.reason === "malformed_body"
  }
}

describe("the kit", () => {
  it("judges the deliveries as the verifiers must", () => {
    for (const delivery of deliveries())
      expect([delivery.what, byTheKit(delivery)]).toEqual([delivery.what, delivery.genuine])
  })
})

describe.each(languages)("the verifier in $name", (language) => {
  it("stands in the guide, line by line", () => {
    const shown = new RegExp(`\`\`\`${language.fence}\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1]
    expect(shown).toBe(readFileSync(join(folder, language.file), "utf8"))
  })

  const { here, note } = installed(language)
  it.skipIf(!here)(
    `accepts what is genuine and refuses all else${note}`,
    async () => {
      const cases = deliveries()
      const answers = await answersOf(
        language,
        cases.map(({ body, header, secrets }) => ({ body: Buffer.from(body).toString("base64"), header, secrets }))
      )
      expect(cases.map(({ what }, index) => [what, answers[index]])).toEqual(
        cases.map(({ genuine, what }) => [what, String(genuine)])
      )
    },
    300_000
  )
})
