import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Redacted } from "effect"
import verifiers from "../../src/console/api/verifiers.json" with { type: "json" }
import { environmentFile, snippetsFor } from "../../src/console/pages/destinations/snippets.ts"
import { signatureHeaders } from "../../src/engine/attempts/Signing.ts"
import { signatureHeaderName } from "../../src/events/DeliveryHeaders.ts"
import { answersOf, type Command, installed, type Program } from "../webhooks/Programs.ts"

const kitUrl = "https://payments.example/packages/connected-payments-webhooks-0.1.0.tgz"
const organizationId = "0199c0de-0000-7000-8000-000000000001"
const secret = `whsec_${"A".repeat(43)}`
const folder = mkdtempSync(join(tmpdir(), "connected-payments-snippets-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const example = (file: string): string => readFileSync(new URL(`../examples/webhooks/${file}`, import.meta.url), "utf8")

const snippet = (id: string, livemode = false): string =>
  snippetsFor({ kitUrl, organizationId, livemode }).find((one) => one.id === id)?.code ?? ""

const header = (body: string, key = secret): string =>
  signatureHeaders({
    eventId: "svc_evt_1",
    timestamp: Math.floor(Date.now() / 1000),
    body,
    secrets: [Redacted.make(key)]
  })[signatureHeaderName]

const cases = () => {
  const event = {
    id: "svc_evt_1",
    type: "payment.succeeded",
    version: 1,
    livemode: false,
    organization_id: organizationId
  }
  const of = (changes: object, status: number) => {
    const body = JSON.stringify({ ...event, ...changes, data: {} })
    return { body, header: header(body), status }
  }
  const genuine = of({}, 204)
  return [
    genuine,
    of({ test: true }, 204),
    of({ version: 2 }, 400),
    of({ livemode: true }, 400),
    of({ organization_id: "0199c0de-0000-7000-8000-000000000009" }, 400),
    { ...genuine, body: `${genuine.body} `, status: 400 },
    { ...genuine, header: header(genuine.body, "whsec_another"), status: 400 }
  ]
}

interface Language extends Pick<Program, "name" | "probe"> {
  readonly id: string
  /** Writes a program around the snippet that answers the cases; returns how to run it. */
  readonly program: () => Command
}

const written = (file: string, text: string): string => {
  const path = join(folder, file)
  writeFileSync(path, text)
  return path
}

const languages: ReadonlyArray<Language> = [
  {
    id: "python",
    name: "Python",
    probe: ["python3", "--version"],
    program: () => {
      const loop = `
import sys
for line in sys.stdin:
    case = json.loads(line)
    print(receive(case["body"].encode(), case["header"]))
`
      return ["python3", "-B", written("receiver.py", `${snippet("python")}${loop}`)]
    }
  },
  {
    id: "go",
    name: "Go",
    probe: ["go", "version"],
    program: () => {
      const main = written(
        "main.go",
        `package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	lines := json.NewDecoder(os.Stdin)
	for lines.More() {
		var given struct{ Body, Header string }
		if err := lines.Decode(&given); err != nil {
			panic(err)
		}
		fmt.Println(Receive([]byte(given.Body), given.Header))
	}
}
`
      )
      return ["go", "run", main, written("receiver.go", snippet("go"))]
    }
  },
  {
    id: "ruby",
    name: "Ruby",
    probe: ["ruby", "--version"],
    program: () => {
      const loop = `
$stdin.each_line do |line|
  given = JSON.parse(line)
  puts receive(given["body"], given["header"])
end
`
      return ["ruby", written("receiver.rb", `${snippet("ruby")}${loop}`)]
    }
  },
  {
    id: "php",
    name: "PHP",
    probe: ["php", "--version"],
    program: () => {
      const loop = `
while (($line = fgets(STDIN)) !== false) {
    $given = json_decode($line, true);
    echo receive($given['body'], $given['header']), "\\n";
}
`
      return ["php", written("receiver.php", `${snippet("php")}${loop}`)]
    }
  }
]

describe("the receivers that a new destination shows", () => {
  it("verify with the guide's own functions", () => {
    expect(example("python/verify_webhook.py")).toBe(verifiers.python)
    expect(example("ruby/verify_webhook.rb")).toBe(verifiers.ruby)
    expect(example("php/verify_webhook.php")).toContain(verifiers.php)
    expect(example("go/verify_webhook.go")).toContain(verifiers.go)
    for (const [language, verifier] of Object.entries(verifiers)) expect(snippet(language)).toContain(verifier)
  })

  it("are, on Node, the guide's receiver with the facts filled in", () => {
    const code = snippet("node", true)
    expect(code).toContain(`organizationId: "${organizationId}"`)
    expect(code).toContain("livemode: true,")
    expect(code).toContain(`npm install ${kitUrl}\n`)
    // All that is taken from the kit is what the guide's receiver takes
    const kit = /import \{.*\} from "connected-payments-webhooks"/
    expect(kit.exec(code)?.[0]).toBe(kit.exec(example("node/receiver.mjs"))?.[0])
  })

  it("have the secret in the environment alone", () => {
    expect(environmentFile(secret)).toBe(`WEBHOOK_SECRET=${secret}\n`)
    for (const { code } of snippetsFor({ kitUrl, organizationId, livemode: false })) {
      expect(code).toContain("WEBHOOK_SECRET")
      expect(code).not.toContain("whsec_")
    }
  })

  for (const language of languages) {
    const { here, note } = installed(language)
    it.skipIf(!here)(`answer as they should in ${language.name}${note}`, { timeout: 240_000 }, async () => {
      const all = cases()
      const answers = await answersOf(
        { run: language.program() },
        all.map(({ body, header }) => ({ body, header })),
        { ...process.env, WEBHOOK_SECRET: secret }
      )
      expect(answers.map(Number)).toEqual(all.map((one) => one.status))
    })
  }
})
