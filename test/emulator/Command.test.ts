import { readFileSync } from "node:fs"
import { Context, Effect, Layer } from "effect"
import { type Emulator, triggers } from "../../src/emulator/Emulator.ts"
import { cliHere, type Ended } from "../app/cli/CliProcess.ts"
import { expect, layer } from "../harness/Tests.ts"
import { call, raw, sdk, secretKey, startEmulator, temporaryDirectory, webhookSecret } from "./Harness.ts"

interface Scene {
  readonly emulator: Emulator
  readonly account: string
  /** Runs `emulator …` with the platform's key in its settings and an empty data directory. */
  readonly run: (...args: ReadonlyArray<string>) => Effect.Effect<Ended>
}

class Running extends Context.Tag("test/emulator/Running")<Running, Scene>() {
  static readonly layer = Layer.scoped(
    Running,
    Effect.gen(function* () {
      const emulator = yield* startEmulator()
      const settings = {
        DATA_DIR: yield* temporaryDirectory,
        PROVIDER_SANDBOX_SECRET_KEY: secretKey,
        PROVIDER_SANDBOX_WEBHOOK_SECRETS: webhookSecret
      }
      const run: Scene["run"] = (...args) => cliHere(settings, "emulator", ...args)
      return { emulator, account: yield* emulator.ensureAccount(), run }
    })
  )
}

layer(Running.layer)("connected-payments emulator", (it) => {
  it.effect("triggers what is named, with its options, on the only account or the one that is named", function* () {
    const { account, emulator, run } = yield* Running
    const options = ["--options", '{"amount": 2500, "outcome": "won"}']
    const done = yield* run("trigger", "charge.dispute.closed", ...options, "--url", emulator.url)
    expect(done, done.stderr).toMatchObject({ code: 0, stderr: "" })
    for (const words of [account, "charge.dispute.funds_reinstated evt_", "charge.dispute.closed evt_"]) {
      expect(done.stdout).toContain(words)
    }
    const [dispute] = (yield* call(() => sdk(emulator.url, account).disputes.list())).data
    expect(dispute).toMatchObject({ amount: 2500, status: "won" })
    expect(done.stdout).toContain(dispute?.id)

    const other = yield* emulator.ensureAccount()
    const url = `--url=${emulator.url}/`
    const json = yield* run(
      "trigger",
      "account.updated",
      "--account",
      other,
      url,
      "--json",
      "--options",
      '{"thin":true}'
    )
    expect(json, json.stderr).toMatchObject({
      code: 0,
      json: {
        type: "account.updated",
        account: other,
        object: other,
        events: [{ type: "account.updated" }],
        thin_events: [{ type: "v1.account.updated" }]
      }
    })
  })

  it.effect("lists every trigger, for people and for programs, and the guide names them", function* () {
    const { run } = yield* Running
    const guide = readFileSync(new URL("../../src/docs/guides/local-provider.md", import.meta.url), "utf8")
    for (const { type } of triggers) expect(guide).toContain(`\`${type}\``)
    const [text, json] = [yield* run("triggers"), yield* run("triggers", "--json")]
    for (const { description, type } of triggers) {
      expect(text.stdout).toContain(`${type} `)
      expect(text.stdout).toContain(description)
    }
    expect(json.json).toEqual(JSON.parse(JSON.stringify(triggers)))
  })

  it.effect("answers wrong usage with exit code 2, before anything is asked", function* () {
    const { run } = yield* Running
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
      [["trigger"], /type/],
      [["trigger", "payout.lost"], /no trigger 'payout\.lost'.*payout\.paid/s],
      [["trigger", "payout.paid", "--account", "42"], /--account must be/],
      [["trigger", "payout.paid", "--url", "ftp://x"], /--url must be/],
      [["trigger", "payout.paid", "--options", "{amount}"], /--options must be a JSON object/],
      [["trigger", "payout.paid", "--options", "[]"], /--options must be a JSON object/],
      [["trigger", "payout.paid", "--options", '{"account":"acct_1"}'], /--options must be a JSON object/],
      [["trigger", "payout.paid", "--amount", "5"], /no option --amount/],
      [["untrigger"], /no command/]
    ]
    for (const [args, words] of cases) {
      const ended = yield* run(...args)
      expect([args, ended.code, ended.stdout]).toEqual([args, 2, ""])
      expect(ended.stderr).toMatch(words)
    }
  })

  it.effect("says with exit code 1 what the emulator refuses, and where there is none", function* () {
    const { account, emulator, run } = yield* Running
    const before = yield* raw(emulator.url, `/_emulator/events?account=${account}`)
    const at = ["--url", emulator.url, "--account", account]
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
      [["trigger", "payout.paid"], /^No service with a provider emulator is running on DATA_DIR\. Start one/],
      [["trigger", "payout.paid", "--url", "http://127.0.0.1:1"], /127\.0\.0\.1:1 can't be reached/],
      [["trigger", "payout.paid", ...at, "--options", '{"colour":"red"}'], /colour: is unexpected/],
      [["trigger", "payout.paid", ...at, "--options", '{"payout":"po_none"}'], /No such payout: 'po_none'/],
      [["trigger", "payout.paid", "--url", emulator.url, "--account", "acct_none"], /does not have access to account/]
    ]
    for (const [args, words] of cases) {
      const ended = yield* run(...args)
      expect([args, ended.code, ended.stdout]).toEqual([args, 1, ""])
      expect(ended.stderr).toMatch(words)
      expect(ended.stderr).not.toContain(secretKey)
    }
    expect((yield* raw(emulator.url, `/_emulator/events?account=${account}`)).text).toBe(before.text)
  })
})
