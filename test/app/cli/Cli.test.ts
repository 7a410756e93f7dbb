import { existsSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { userInfo } from "node:os"
import { expect } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Organizations } from "../../../src/identity/organizations/Organizations.ts"
import { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { migrations } from "../../../src/platform/storage/Migrations.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { inDatabase, onService, sendRequest, serviceOf, TestService } from "../../harness/TestService.ts"
import { expectFailure } from "../../surface/http/Refusals.ts"
import { cli, cliHere, type Ended, expectDone, expectRefused, operatorSettings } from "./CliProcess.ts"

const unknownId = "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40"

const operator = Effect.map(operatorSettings, (environment) => ({
  environment,
  run: (...args: ReadonlyArray<string>) => cli(environment, ...args),
  runHere: (...args: ReadonlyArray<string>) => cliHere(environment, ...args)
}))

const makeOrganization = Effect.gen(function* () {
  const name = `o${Math.random().toString(36).slice(2)}`
  const ownerEmail = `${name}@example.com`
  const { id } = yield* (yield* serviceOf(Organizations)).create({ name, ownerEmail })
  return { id, name, ownerEmail }
})

const auditOf = (organizationId: OrganizationId) =>
  Effect.map(
    inDatabase<{ entry: string }>`
      SELECT concat_ws(' ', action, author_kind, author_id) AS entry FROM payments.audit_log
      WHERE organization_id = ${organizationId} ORDER BY id`,
    (rows) => rows.map(({ entry }) => entry)
  )

const operatorName = `operator ${userInfo().username}`

const Made = Schema.Struct({ id: Schema.UUID })
const MadeKey = Schema.Struct({ id: Schema.UUID, key: Schema.String })
const madeKey = ({ json }: Ended) => Schema.decodeUnknownSync(MadeKey)(json)

onService()("connected-payments", (it) => {
  it.scoped(
    "keys: what is created authenticates, is listed without the key, and is refused once revoked",
    function* () {
      const { environment, run, runHere } = yield* operator
      const { id } = yield* makeOrganization
      const create = ["keys", "create", "--organization", id, "--json", "--name", "Shop"]
      const read = (key: string) => sendRequest("GET", `/v2/organizations/${id}/integrations/endpoints`, { key })
      const [test, live] = yield* Effect.all(
        [
          run(...create, "--permission", "*", "--permission=webhook-endpoints:read", "--expires", "90 days"),
          runHere(
            ...create,
            "--permission",
            "webhook-endpoints:read",
            "--mode",
            "live",
            "--expires",
            "2100-01-01",
            "--as",
            "Grace Hopper"
          )
        ],
        { concurrency: 2 }
      )
      expectDone(test)
      const { id: testId, key: testKey } = madeKey(test)
      expect(testKey).toMatch(/^pk_test_[A-Za-z0-9_-]{43}$/)
      expect(test.json).toMatchObject({ environment: "sandbox", permissions: ["*", "webhook-endpoints:read"] })
      expect(madeKey(expectDone(live)).key).toMatch(/^pk_live_[A-Za-z0-9_-]{43}$/)
      expect(live.json).toMatchObject({ environment: "production", expiresAt: "2100-01-01T00:00:00.000Z" })
      expect((yield* read(testKey)).status).toBe(200)
      expect((yield* read(madeKey(live).key)).status).toBe(200)

      const [all, sandbox] = yield* Effect.all(
        [
          runHere("keys", "list", "--organization", id, "--json"),
          runHere("keys", "list", "--organization", id, "--environment", "sandbox")
        ],
        { concurrency: 2 }
      )
      expect(expectDone(all).json).toMatchObject([{ environment: "sandbox" }, { environment: "production" }])
      expect(expectDone(sandbox).stdout).toContain(testId)
      expect(sandbox.stdout).not.toContain(madeKey(live).id)
      for (const { stdout } of [all, sandbox]) {
        expect(stdout).not.toContain(testKey)
      }

      // As on a plain machine: the settings are in the units' file, and the command is run by sudo
      const file = `${environment.DATA_DIR}.env`
      const quoted = Object.entries(environment).map(([name, value]) => `${name}="${value}"\n`)
      yield* Effect.promise(() => writeFile(file, quoted.join("")))
      const revoke = ["keys", "revoke", "--organization", id, testId, "--json"]
      const revoked = yield* cli({ SUDO_USER: "ada" }, "--env-file", file, ...revoke)
      expect(expectDone(revoked).json).toEqual({ id: testId, revoked: true })
      // Node 20 itself looks for such a file among a program's arguments
      const lost = yield* cli({}, "--env-file", `${file}.missing`, ...revoke)
      expect([[2, 9].includes(lost.code ?? 0), lost.stderr]).toEqual([true, expect.stringContaining(".missing")])
      expectFailure(yield* read(testKey), { status: 401, code: "api_key_invalid" })
      expect((yield* read(madeKey(live).key)).status).toBe(200)
      expectRefused(yield* runHere("keys", "revoke", "--organization", id, testId), 1, `no key ${testId}`)
      // The two were created at the same time
      expect((yield* auditOf(id)).slice(1).toSorted()).toEqual(
        [
          `api_key.created ${operatorName}`,
          "api_key.created operator Grace Hopper",
          "api_key.revoked operator ada"
        ].toSorted()
      )
      expect(existsSync(environment.DATA_DIR)).toBe(false)
    }
  )

  it.scoped("accounts: a link is verified at the provider, and alone reconnects a disconnected account", function* () {
    const { emulator, sql } = yield* TestService
    const { run, runHere } = yield* operator
    const { id } = yield* makeOrganization
    const tenant = ["--organization", id, "--environment", "sandbox"]
    const accountId = yield* emulator.ensureAccount()
    const link = runHere("accounts", "link", ...tenant, "--account", accountId, "--json")
    const [unknown, none] = yield* Effect.all(
      [
        runHere("accounts", "link", ...tenant, "--account", "acct_0000000000000000"),
        runHere("accounts", "unlink", ...tenant, "--json")
      ],
      { concurrency: 2 }
    )
    expectRefused(unknown, 1, /knows no account acct_0000000000000000.*Nothing was changed/)
    expectRefused(none, 1, "no account linked in sandbox")
    expect(yield* sql`SELECT 1 FROM payments.provider_accounts WHERE organization_id = ${id}`).toEqual([])

    const linked = yield* run("accounts", "link", ...tenant, "--account", accountId, "--json")
    expect(expectDone(linked).json).toMatchObject({
      organizationId: id,
      environment: "sandbox",
      accountId,
      status: "connected",
      hadPaymentsBefore: false
    })
    yield* sql`
        UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
        WHERE organization_id = ${id}`
    expect(expectDone(yield* runHere("accounts", "show", ...tenant, "--json")).json).toMatchObject({
      status: "disconnected"
    })
    expect(expectDone(yield* link).json).toMatchObject({ status: "connected", disconnectedAt: null })

    const live = ["--organization", id, "--environment", "production", "--account", accountId]
    const [shown, withoutKey, taken] = yield* Effect.all(
      [
        runHere("accounts", "show", ...tenant),
        runHere("accounts", "link", ...live),
        runHere("accounts", "link", ...tenant, "--account", yield* emulator.ensureAccount())
      ],
      { concurrency: 2 }
    )
    expect(expectDone(shown).stdout).toMatch(new RegExp(`Account +${accountId}\n`))
    expectRefused(withoutKey, 1, "No provider key is set for the environment production")
    expectRefused(taken, 1, "Another account is connected in this environment: unlink it first")
    expect(expectDone(yield* runHere("accounts", "unlink", ...tenant, "--json")).json).toMatchObject({ accountId })
    expectRefused(yield* runHere("accounts", "show", ...tenant), 1, "no account linked in sandbox")
    expect((yield* auditOf(id)).slice(1)).toEqual([
      `account.linked ${operatorName}`,
      `account.linked ${operatorName}`,
      `account.unlinked ${operatorName}`
    ])
  })

  it.scoped("organizations and members: made, shown, changed and removed by their e-mail addresses", function* () {
    const { runHere } = yield* operator
    const owner = `boss${Math.random().toString(36).slice(2)}@example.com`
    const create = runHere(
      "organizations",
      "create",
      "--name",
      " Açaí & Co ",
      "--owner-email",
      owner.toUpperCase(),
      "--json"
    )
    const { id } = Schema.decodeUnknownSync(Made)(expectDone(yield* create).json)
    const [again, list, shown] = yield* Effect.all(
      [create, runHere("organizations", "list", "--json"), runHere("organizations", "show", id, "--json")],
      { concurrency: 2 }
    )
    expectRefused(again, 1, /^This person already has an organization\.\n$/)
    expect(expectDone(list).json).toContainEqual({ id, name: "Açaí & Co" })
    expect(expectDone(shown).json).toEqual({
      id,
      name: "Açaí & Co",
      owners: [owner],
      accounts: { sandbox: null, production: null }
    })

    const email = `dev${Math.random().toString(36).slice(2)}@example.com`
    const member = ["--organization", id, "--email", email]
    expect(
      expectDone(
        yield* runHere("members", "add", ...member, "--role", "developer", "--environment", "sandbox", "--json")
      ).json
    ).toMatchObject({ email, role: "developer", environments: ["sandbox"] })
    expect(
      expectDone(yield* runHere("members", "set-role", ...member, "--role", "viewer", "--json")).json
    ).toMatchObject({
      role: "viewer",
      environments: ["sandbox"]
    })
    const [both, lastOwner] = yield* Effect.all(
      [
        runHere("members", "list", "--organization", id, "--json"),
        runHere("members", "remove", "--organization", id, "--email", owner)
      ],
      { concurrency: 2 }
    )
    expect(both.json).toMatchObject([
      { email: owner, role: "owner" },
      { email, role: "viewer" }
    ])
    expectRefused(lastOwner, 1, "keeps at least one owner")
    const [renamed, badName, notEmpty] = yield* Effect.all(
      [
        runHere("organizations", "rename", "--name", "Açaí Ltd", id, "--json"),
        runHere("organizations", "rename", "--name", "see https://evil.example", id),
        runHere("organizations", "close", id)
      ],
      { concurrency: 2 }
    )
    expect(expectDone(renamed).json).toEqual({ id, name: "Açaí Ltd" })
    expectRefused(badName, 2, "--name must have 1 to")
    expectRefused(notEmpty, 1, "members")
    expect(expectDone(yield* runHere("members", "remove", ...member)).stdout).toContain("no longer a member")
    expectRefused(yield* runHere("members", "set-role", ...member, "--role", "admin"), 1, `${email} is not a member`)
    expect(expectDone(yield* runHere("organizations", "close", id, "--json")).json).toEqual({ id, closed: true })
    expect(yield* auditOf(OrganizationId.make(id))).toEqual(
      [
        "organization.created",
        "member.added",
        "member.updated",
        "organization.updated",
        "member.removed",
        "organization.closed"
      ].map((done) => `${done} ${operatorName}`)
    )
  })

  it.scoped("answers an unknown organization with exit code 1, whatever is asked of it", function* () {
    const { runHere } = yield* operator
    const tenant = ["--organization", unknownId, "--environment", "sandbox"]
    const ended = yield* Effect.forEach(
      [
        ["organizations", "show", unknownId],
        ["organizations", "rename", "--name", "Nobody", unknownId],
        ["organizations", "close", unknownId],
        ["members", "add", "--organization", unknownId, "--email", "a@example.com", "--role", "admin"],
        ["keys", "create", "--organization", unknownId, "--name", "x", "--permission", "*"],
        ["keys", "revoke", "--organization", unknownId, unknownId],
        ["accounts", "link", ...tenant, "--account", "acct_0000000000000000"]
      ],
      (args) => runHere(...args),
      { concurrency: 2 }
    )
    for (const one of ended) {
      expectRefused(one, 1, `There is no organization ${unknownId}.`)
    }
  })

  it.scoped("answers wrong usage with exit code 2, before anything is asked or done", function* () {
    const { run, runHere } = yield* operator
    const key = ["keys", "create", "--organization", unknownId]
    const cases: ReadonlyArray<readonly [args: ReadonlyArray<string>, words: string | RegExp]> = [
      [[], "No command is given"],
      [["keys", "make"], "no command 'keys make'"],
      [
        [...key, "--name", "x", "--permission", "refunds:write", "--expires", "1 Jan"],
        /--permission must be one of.*--expires must be/s
      ],
      [[...key, "--nam", "x"], "no option --nam"],
      [
        ["keys", "create", "--organization", "acme", "--name", " ", "--permission", "*", "--mode", "prod"],
        /--organization must be.*--name must have/s
      ],
      [["keys", "revoke", "--organization", unknownId, "key-1"], "'key-1' is not an id"],
      [["trigger", "payment.made"], /no event type 'payment.made'.*See: connected-payments trigger --help/s],
      [
        ["accounts", "link", "--organization", unknownId, "--environment", "test", "--account", "42"],
        /--account must be/
      ],
      [["organizations", "create", "--name", "x", "--owner-email", "ana"], "--owner-email must be an e-mail address"]
    ]
    const ended = yield* Effect.forEach(cases, ([args]) => runHere(...args), { concurrency: 2 })
    ended.forEach((one, index) => {
      expectRefused(one, 2, cases[index]?.[1] ?? "")
    })
    expectRefused(yield* run(...key, "--name", "x"), 2, "--permission")
    expectRefused(
      yield* runHere(...key, "--name", "x", "--permission", "*", "--expires", "2001-01-01"),
      2,
      "in the future"
    )
  })

  it.scoped("helps: all commands, those of a noun, and one with its options and an example", function* () {
    const { run, runHere } = yield* operator
    const [all, keys, create] = yield* Effect.all(
      [run("--help"), runHere("keys", "--help"), runHere("keys", "create", "--help")],
      { concurrency: 2 }
    )
    for (const command of [
      "serve",
      "migrate",
      ...["create", "list", "show", "rename", "close"].map((verb) => `organizations ${verb}`),
      ...["list", "add", "set-role", "remove"].map((verb) => `members ${verb}`),
      ...["create", "list", "revoke"].map((verb) => `keys ${verb}`),
      ...["link", "unlink", "show"].map((verb) => `accounts ${verb}`)
    ]) {
      expect(all.stdout).toMatch(new RegExp(`^  ${command} +[A-Z]`, "m"))
      expect(all.stdout).toContain(`$ connected-payments ${command}`)
    }
    expect(expectDone(all).stdout).toContain("Exit codes: 0 done, 1 failed, 2 wrong usage")
    expect(expectDone(keys).stdout).toContain("  keys revoke  ")
    expect(keys.stdout).not.toContain("accounts")
    for (const words of [
      "$ connected-payments keys create --organization <uuid> ",
      "--organization <uuid>",
      "--mode <test|live>",
      "--expires <duration|ISO 8601 date or time>",
      "--json",
      "$ connected-payments keys create --org"
    ]) {
      expect(expectDone(create).stdout).toContain(words)
    }
    // Colours are for terminals
    expect(create.stdout).not.toContain("\u001b")
  })

  it.scoped(
    "migrate says what it applied; other commands never change a schema, nor hide a database that is away",
    function* () {
      const { environment } = yield* operator
      const { url } = yield* createTestDatabase()
      const empty = { ...environment, DATABASE_URL: Redacted.value(url) }
      expectRefused(yield* cliHere(empty, "organizations", "list"), 1, "Run: connected-payments migrate")
      const first = yield* cli(empty, "migrate", "--json")
      expect(expectDone(first).json).toEqual({ applied: Object.keys(migrations) })
      const [second, list, away, unset] = yield* Effect.all(
        [
          cliHere(empty, "migrate", "--json"),
          cliHere(empty, "organizations", "list"),
          cliHere({ ...environment, DATABASE_URL: "postgresql://nobody:secret-word@127.0.0.1:1/none" }, "migrate"),
          cliHere({ ...environment, DATABASE_URL: "" }, "migrate")
        ],
        { concurrency: 2 }
      )
      expect(expectDone(second).json).toEqual({ applied: [] })
      expect(expectDone(list).stdout).toBe("There are no organizations.\n")
      expectRefused(away, 1, /The database cannot be reached.*ECONNREFUSED/s)
      expect(away.stderr).not.toContain("secret-word")
      expectRefused(unset, 1, "DATABASE_URL: must be")
    }
  )
})
