import { expect } from "@effect/vitest"
import { Context, Effect, Fiber, Option, Redacted } from "effect"
import { Invitations } from "../../src/identity/members/Invitations.ts"
import { Members } from "../../src/identity/members/Members.ts"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { Accounts } from "../../src/provider/Accounts.ts"
import { cliHere } from "../cli/CliProcess.ts"
import { connectionTo } from "../harness/Connection.ts"
import { eventually } from "../harness/Eventually.ts"
import { newEmail } from "../harness/SignIn.ts"
import { emptyDataDirectory } from "../process/ServiceProcess.ts"
import { Cells, onCells, type TestCell } from "./CellsBed.ts"

const author = { kind: "operator", id: "test" } as const

const organizationsOf = ({ services }: TestCell) => Context.get(services, Organizations)
const accountsOf = ({ services }: TestCell) => Context.get(services, Accounts)
const membersOf = ({ services }: TestCell) => Context.get(services, Members)

const create = (cell: TestCell, ownerEmail: string) =>
  organizationsOf(cell).create({ name: "Bakery", ownerEmail, author })

onCells("a cell among others", (it) => {
  it.effect("gives an account to one organization of all cells, until that is unlinked", () =>
    Effect.gen(function* () {
      const { directory, emulator, north, south } = yield* Cells
      const accountId = yield* emulator.ensureAccount()
      const inNorth = { organizationId: (yield* create(north, newEmail())).id, environment: "sandbox" } as const
      const inSouth = { organizationId: (yield* create(south, newEmail())).id, environment: "sandbox" } as const
      const linked = yield* Effect.all(
        [
          Effect.either(accountsOf(north).link(inNorth, accountId, author)),
          Effect.either(accountsOf(south).link(inSouth, accountId, author))
        ],
        { concurrency: 2 }
      )
      const refused = linked.filter(({ _tag }) => _tag === "Left")
      expect(refused).toMatchObject([{ left: { _tag: "AccountTaken", reason: "another_organization" } }])
      const [first, second] = linked[0]._tag === "Right" ? [north, south] : [south, north]
      const [tenant, other] = first === north ? [inNorth, inSouth] : [inSouth, inNorth]
      expect(yield* directory.cellOfAccount("sandbox", accountId)).toMatchObject({ value: { cell: first.name } })
      expect(yield* second.sql`SELECT 1 FROM payments.provider_accounts WHERE account_id = ${accountId}`).toEqual([])

      yield* accountsOf(first).unlink(tenant, author)
      expect(yield* directory.cellOfAccount("sandbox", accountId)).toEqual(Option.none())
      yield* accountsOf(second).link(other, accountId, author)
      expect(yield* directory.cellOfAccount("sandbox", accountId)).toMatchObject({ value: { cell: second.name } })
    })
  )

  it.effect("frees the account that another one replaces", () =>
    Effect.gen(function* () {
      const { directory, emulator, north } = yield* Cells
      const tenant = { organizationId: (yield* create(north, newEmail())).id, environment: "sandbox" } as const
      const [former, next] = [yield* emulator.ensureAccount(), yield* emulator.ensureAccount()]
      yield* accountsOf(north).link(tenant, former, author)
      const taken = yield* Effect.flip(accountsOf(north).link(tenant, next, author))
      expect(taken).toMatchObject({ _tag: "AccountTaken", reason: "another_account" })
      // The write failed, so its claim is gone
      expect(yield* directory.cellOfAccount("sandbox", next)).toEqual(Option.none())
      yield* accountsOf(north).disconnect(tenant, former, author)
      yield* accountsOf(north).link(tenant, next, author)
      expect(yield* directory.cellOfAccount("sandbox", former)).toEqual(Option.none())
      expect(Option.isSome(yield* directory.cellOfAccount("sandbox", next))).toBe(true)
    })
  )

  it.effect("gives a person one organization in all cells, also at the same moment, and another once they left", () =>
    Effect.gen(function* () {
      const { directorySql, north, south } = yield* Cells
      const email = newEmail()
      const created = yield* Effect.forEach(
        [north, south, north, south],
        (cell) => Effect.either(create(cell, email)),
        { concurrency: "unbounded" }
      )
      const made = created.flatMap((result) => (result._tag === "Right" ? [result.right] : []))
      expect(made).toHaveLength(1)
      for (const result of created) {
        if (result._tag === "Left") expect(result.left).toMatchObject({ _tag: "OrganizationAlreadyExists" })
      }
      // What was refused left no organization in the directory
      const rows = yield* directorySql<{ id: string }>`
        SELECT p.organization_id AS id FROM payments_directory.people p
        WHERE p.email_hash = sha256(convert_to(${email}, 'UTF8'))`
      expect(rows).toEqual([{ id: made[0]?.id }])
      const unused = yield* directorySql`
        SELECT 1 FROM payments_directory.organizations o
        WHERE o.cell = 'south' AND NOT EXISTS (SELECT 1 FROM payments_directory.people p WHERE p.organization_id = o.id)`
      expect(unused).toEqual([])

      const organizationId = made[0]?.id
      if (organizationId === undefined) return
      const home = (yield* organizationsOf(north).exists(organizationId)) ? north : south
      const other = home === north ? south : north
      yield* membersOf(home).add({ organizationId, email: newEmail(), role: "owner", environments: [], author })
      const member = (yield* membersOf(home).list(organizationId)).find((one) => one.email === email)
      yield* membersOf(home).remove({ organizationId, personId: member?.personId ?? "", author })
      const again = yield* create(other, email)
      expect(yield* organizationsOf(other).exists(again.id)).toBe(true)
    })
  )

  it.scoped("releases the claims of a write that fails, and of none that a process left half-way is lost", () =>
    Effect.gen(function* () {
      const { directory, directorySql, north, south } = yield* Cells
      const organizationId = (yield* create(north, newEmail())).id
      const email = newEmail()
      const refused = yield* Effect.flip(
        membersOf(north).add({
          organizationId,
          email,
          role: "admin",
          environments: [],
          // Nobody of this organization, so that the write is refused after the claim
          author: { kind: "person", id: "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40" }
        })
      )
      expect(refused._tag).toBe("PermissionDenied")
      expect(yield* directory.cellOfPerson(email)).toEqual(Option.none())
      yield* create(south, email)

      // As a process leaves them that dies between claim and write, and between write and claim
      const claims = directory.claimingFor("north")
      const lost = newEmail()
      yield* claims.claimPerson(lost, organizationId)
      yield* claims.claimAccount({ organizationId, environment: "production" }, "acct_halfway")
      yield* directorySql`UPDATE payments_directory.people SET changed_at = now() - interval '1 hour'`
      yield* directorySql`UPDATE payments_directory.accounts SET changed_at = now() - interval '1 hour'`
      yield* directorySql`UPDATE payments_directory.organizations SET changed_at = now() - interval '1 hour'`
      yield* directorySql`DELETE FROM payments_directory.accounts WHERE account_id = ${north.organization.accountId}`
      const run = yield* reconcileNorth
      const dry = yield* run()
      expect(dry.json, dry.stderr).toMatchObject({ unclaimed: 1, unused: 2, taken: 0, repaired: false })
      expect((yield* run()).json).toMatchObject({ unclaimed: 1, unused: 2 })
      expect((yield* run("--repair")).json).toMatchObject({ unclaimed: 1, unused: 2, repaired: true })
      expect((yield* run()).json).toMatchObject({ unclaimed: 0, unused: 0, taken: 0, differences: [] })
      expect(yield* directory.cellOfPerson(lost)).toEqual(Option.none())
      expect(yield* directory.cellOfAccount("sandbox", north.organization.accountId)).toMatchObject({
        value: { cell: "north", organizationId: north.organization.id }
      })
    })
  )

  it.scoped("keeps the claim of an account that is linked while it is being unlinked", () =>
    Effect.gen(function* () {
      const { directory, directorySql, emulator, north } = yield* Cells
      const tenant = { organizationId: (yield* create(north, newEmail())).id, environment: "sandbox" } as const
      const accountId = yield* emulator.ensureAccount()
      yield* accountsOf(north).link(tenant, accountId, author)
      // After every link the claim is looked at once more
      const version = Effect.map(
        Effect.orDie(directorySql<{ version: string }>`
          SELECT version FROM payments_directory.accounts WHERE account_id = ${accountId}`),
        ([row]) => Number(row?.version ?? 0)
      )
      const claimedBy = (least: number) =>
        eventually(
          `version ${least} of the claim`,
          Effect.map(version, (now) => (now >= least ? Option.some(now) : Option.none()))
        )
      const before = yield* claimedBy(2)
      // A second link has its claim, and waits for the organization's row
      const busy = yield* connectionTo(north.databaseUrl)
      yield* Effect.promise(async () => {
        await busy.query("BEGIN")
        await busy.query("SELECT 1 FROM payments.organizations WHERE id = $1 FOR NO KEY UPDATE", [
          tenant.organizationId
        ])
      })
      const linking = yield* Effect.fork(accountsOf(north).link(tenant, accountId, author))
      yield* claimedBy(before + 1)
      expect(Option.isSome(yield* accountsOf(north).unlink(tenant, author))).toBe(true)
      yield* Effect.promise(() => busy.query("COMMIT"))
      yield* Fiber.join(linking)
      expect(Option.isSome(yield* accountsOf(north).show(tenant))).toBe(true)
      yield* eventually(
        "the directory's record of the account",
        Effect.map(
          Effect.orDie(directory.cellOfAccount("sandbox", accountId)),
          Option.filter(({ cell }) => cell === "north")
        )
      )
    })
  )

  it.effect("refuses what needs a claim while the directory is away, and nothing else", () =>
    Effect.gen(function* () {
      const { directory, directoryLine, emulator, north, south } = yield* Cells
      const organizationId = (yield* create(south, newEmail())).id
      const leaver = newEmail()
      yield* membersOf(south).add({ organizationId, email: leaver, role: "admin", environments: [], author })
      const accountId = yield* emulator.ensureAccount()
      yield* accountsOf(south).link({ organizationId, environment: "sandbox" }, accountId, author)
      directoryLine.cut()
      const email = newEmail()
      expect(yield* Effect.flip(create(south, email))).toMatchObject({ _tag: "ServiceUnavailable" })
      expect(yield* south.sql`SELECT 1 FROM payments.people WHERE email = ${email}`).toEqual([])
      const invited = yield* Context.get(south.services, Invitations).create({
        organizationId,
        email: newEmail(),
        role: "viewer",
        environments: [],
        author
      })
      expect(invited.role).toBe("viewer")
      // Rights end at once, whether or not the directory can be told
      const member = (yield* membersOf(south).list(organizationId)).find((one) => one.email === leaver)
      yield* membersOf(south).remove({ organizationId, personId: member?.personId ?? "", author })
      expect(Option.isSome(yield* accountsOf(south).unlink({ organizationId, environment: "sandbox" }, author))).toBe(
        true
      )
      directoryLine.mend()
      yield* eventually(
        "the next organization",
        Effect.map(Effect.either(create(south, email)), (made) =>
          made._tag === "Right" ? Option.some(made.right) : Option.none()
        )
      )
      expect(yield* directory.cellOfPerson(leaver)).toEqual(Option.some("south"))
      expect(north.name).toBe("north")
    })
  )
})

/** `cells reconcile` in the cell `north`. */
const reconcileNorth = Effect.gen(function* () {
  const { directoryUrl, north } = yield* Cells
  const directory = yield* emptyDataDirectory
  return (...args: ReadonlyArray<string>) =>
    cliHere(
      {
        DATABASE_URL: Redacted.value(north.databaseUrl),
        DIRECTORY_URL: Redacted.value(directoryUrl),
        CELL_NAME: "north",
        DATA_DIR: directory
      },
      "cells",
      "reconcile",
      "--json",
      ...args
    )
})
