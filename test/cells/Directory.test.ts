import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Directory, type PlaceChanged, type TakenElsewhere } from "../../src/cells/Directory.ts"
import { directoryLayer } from "../../src/cells/DirectoryLive.ts"
import { migrateDirectory } from "../../src/cells/DirectoryMigrations.ts"
import { OrganizationId } from "../../src/kit/Ids.ts"
import { databaseLayer } from "../../src/storage/Database.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"

const onDirectory = layer(
  directoryLayer.pipe(
    Layer.provideMerge(Layer.effectDiscard(migrateDirectory)),
    Layer.provideMerge(
      Layer.unwrapScoped(Effect.map(createTestDatabase(), ({ url }) => databaseLayer({ url, poolSize: 8 })))
    )
  ),
  { excludeTestServices: true, timeout: "60 seconds" }
)

const newOrganization = () => OrganizationId.make(randomUUID())
const newAccount = () => `acct_${randomUUID().replaceAll("-", "")}`
const newEmail = () => `${randomUUID()}@example.com`

const places = Effect.gen(function* () {
  const directory = yield* Directory
  yield* directory.putCell({ name: "north", url: "http://north.internal:8080", home: true })
  yield* directory.putCell({ name: "south", url: "http://south.internal:8080", home: false })
  return { directory, north: directory.claimingFor("north"), south: directory.claimingFor("south") }
})

onDirectory("the directory", (it) => {
  describe("of cells", () => {
    it.effect("has exactly one home: the first, until another one is made so", () =>
      Effect.gen(function* () {
        const { directory } = yield* places
        expect(yield* directory.putCell({ name: "east", url: "http://east.internal", home: true })).toMatchObject({
          home: true
        })
        expect((yield* directory.cells).filter(({ home }) => home).map(({ name }) => name)).toEqual(["east"])
        yield* directory.putCell({ name: "north", url: "http://north.internal:8081", home: true })
        expect(yield* directory.cells).toEqual([
          { name: "east", url: "http://east.internal", home: false },
          { name: "north", url: "http://north.internal:8081", home: true },
          { name: "south", url: "http://south.internal:8080", home: false }
        ])
        // The home can't be without a successor
        expect(yield* directory.putCell({ name: "north", url: "http://north.internal:8080", home: false })).toEqual({
          name: "north",
          url: "http://north.internal:8080",
          home: true
        })
      })
    )

    it.effect("is migrated by any number of processes at once, again without a change", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* Effect.all(
          Array.from({ length: 4 }, () => migrateDirectory),
          { concurrency: 4 }
        )
        const applied = yield* sql`SELECT name FROM payments_directory.migrations`
        expect(applied).toEqual([{ name: "initial" }])
      })
    )
  })

  describe("of organizations and accounts", () => {
    it.effect("gives an organization to one cell, and an account in an environment to one organization", () =>
      Effect.gen(function* () {
        const { directory, north, south } = yield* places
        const [first, second, accountId] = [newOrganization(), newOrganization(), newAccount()]
        yield* north.claimOrganization(first)
        yield* north.claimOrganization(first)
        const taken: TakenElsewhere | { readonly _tag: "ServiceUnavailable" } = yield* Effect.flip(
          south.claimOrganization(first)
        )
        expect(taken).toMatchObject({ _tag: "TakenElsewhere", cell: "north", organizationId: first })

        yield* north.claimAccount({ organizationId: first, environment: "sandbox" }, accountId)
        // Registered on the way: an installation from before the directory has organizations that it does not know
        yield* south.claimAccount({ organizationId: second, environment: "production" }, accountId)
        const refused = yield* Effect.flip(
          south.claimAccount({ organizationId: second, environment: "sandbox" }, accountId)
        )
        expect(refused).toMatchObject({ _tag: "TakenElsewhere", cell: "north", organizationId: first })
        expect(yield* directory.cellOfAccount("sandbox", accountId)).toEqual(
          Option.some({ cell: "north", organizationId: first })
        )
        expect(yield* directory.cellOfAccount("production", accountId)).toEqual(
          Option.some({ cell: "south", organizationId: second })
        )
        // Nobody claims for an organization of another cell
        const foreign = yield* Effect.flip(
          south.claimAccount({ organizationId: first, environment: "production" }, newAccount())
        )
        expect(foreign).toMatchObject({ _tag: "TakenElsewhere", cell: "north", organizationId: first })
      })
    )

    it.effect("lets one of many claim an account at the same time", () =>
      Effect.gen(function* () {
        const { north, south } = yield* places
        const accountId = newAccount()
        const results = yield* Effect.forEach(
          Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? north : south)),
          (cell) =>
            Effect.either(cell.claimAccount({ organizationId: newOrganization(), environment: "sandbox" }, accountId)),
          { concurrency: "unbounded" }
        )
        expect(results.filter(({ _tag }) => _tag === "Right")).toHaveLength(1)
      })
    )

    it.effect("releases a new claim, but neither one that was there before nor one that was claimed again", () =>
      Effect.gen(function* () {
        const { directory, north } = yield* places
        const tenant = { organizationId: newOrganization(), environment: "sandbox" } as const
        const accountId = newAccount()
        const first = yield* north.claimAccount(tenant, accountId)
        yield* north.release(first)
        expect(yield* directory.cellOfAccount("sandbox", accountId)).toEqual(Option.none())

        const second = yield* north.claimAccount(tenant, accountId)
        const third = yield* north.claimAccount(tenant, accountId)
        yield* north.release(second)
        yield* north.release(third)
        expect(Option.isSome(yield* directory.cellOfAccount("sandbox", accountId))).toBe(true)

        yield* north.end(second)
        expect(Option.isSome(yield* directory.cellOfAccount("sandbox", accountId))).toBe(true)
        yield* north.end(third)
        expect(yield* directory.cellOfAccount("sandbox", accountId)).toEqual(Option.none())
      })
    )
  })

  describe("of people", () => {
    it.effect("gives a person one organization in all cells together, whatever the case of their address", () =>
      Effect.gen(function* () {
        const { directory, north, south } = yield* places
        const [email, organizationId] = [newEmail(), newOrganization()]
        yield* north.claimPerson(email.toUpperCase(), null)
        expect(yield* directory.cellOfPerson(email)).toEqual(Option.some("north"))
        // Another cell can't make them its own without an organization, but can by an invitation
        expect(yield* Effect.flip(south.claimPerson(email, null))).toMatchObject({
          cell: "north",
          organizationId: null
        })
        const joined = yield* south.claimPerson(email, organizationId)
        expect(yield* directory.cellOfPerson(email)).toEqual(Option.some("south"))
        expect(yield* Effect.flip(north.claimPerson(email, newOrganization()))).toMatchObject({
          cell: "south",
          organizationId
        })
        expect(yield* Effect.flip(south.claimPerson(email, newOrganization()))).toMatchObject({ organizationId })
        // Undone, they are where they were
        yield* south.release(joined)
        expect(yield* directory.cellOfPerson(email)).toEqual(Option.some("north"))
        // Having left, they stay in the cell, without an organization
        const again = yield* south.claimPerson(email, organizationId)
        yield* south.end(again)
        expect(yield* directory.cellOfPerson(email)).toEqual(Option.some("south"))
        yield* north.claimPerson(email, newOrganization())
      })
    )

    it.effect("lets one of many organizations in all cells have a person", () =>
      Effect.gen(function* () {
        const { north, south } = yield* places
        const email = newEmail()
        const results = yield* Effect.forEach(
          Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? north : south)),
          (cell) => Effect.either(cell.claimPerson(email, newOrganization())),
          { concurrency: "unbounded" }
        )
        expect(results.filter(({ _tag }) => _tag === "Right")).toHaveLength(1)
      })
    )
  })

  describe("of moves", () => {
    it.effect("flips organization, people and accounts together, once, and only as it was last seen", () =>
      Effect.gen(function* () {
        const { directory, north, south } = yield* places
        const [id, email, accountId] = [newOrganization(), newEmail(), newAccount()]
        yield* north.claimOrganization(id)
        yield* north.claimPerson(email, id)
        yield* north.claimAccount({ organizationId: id, environment: "sandbox" }, accountId)
        const refused: PlaceChanged | { readonly _tag: "ServiceUnavailable" } = yield* Effect.flip(
          directory.setMoving(id, "south", "north")
        )
        expect(refused).toMatchObject({ _tag: "PlaceChanged" })
        const moving = yield* directory.setMoving(id, "north", "south")
        expect(moving).toMatchObject({ cell: "north", movingTo: "south" })
        expect(yield* directory.setMoving(id, "north", "south")).toEqual(moving)
        expect(yield* Effect.flip(directory.setMoving(id, "north", "east"))).toMatchObject({ _tag: "PlaceChanged" })
        const outdated = { from: "north", to: "south", version: String(Number(moving.version) - 1) }
        expect(yield* Effect.flip(directory.flip(id, outdated))).toMatchObject({ _tag: "PlaceChanged" })

        const flipped = yield* directory.flip(id, { from: "north", to: "south", version: moving.version })
        expect(flipped).toMatchObject({ cell: "south", movingTo: null })
        expect(yield* directory.cellOfPerson(email)).toEqual(Option.some("south"))
        expect(yield* directory.cellOfAccount("sandbox", accountId)).toMatchObject({ value: { cell: "south" } })
        expect(
          yield* Effect.flip(directory.flip(id, { from: "north", to: "south", version: moving.version }))
        ).toMatchObject({ _tag: "PlaceChanged", place: Option.some(flipped) })
        // The old cell claims nothing for it any more
        expect(yield* Effect.flip(north.claimPerson(newEmail(), id))).toMatchObject({ cell: "south" })
        yield* south.claimPerson(newEmail(), id)
      })
    )

    it.effect("gives a move up without a trace but the version", () =>
      Effect.gen(function* () {
        const { directory, north } = yield* places
        const id = newOrganization()
        yield* north.claimOrganization(id)
        const moving = yield* directory.setMoving(id, "north", "south")
        yield* directory.clearMoving(id)
        yield* directory.clearMoving(id)
        expect(yield* directory.cellOfOrganization(id)).toMatchObject({ value: { cell: "north", movingTo: null } })
        expect(
          yield* Effect.flip(directory.flip(id, { from: "north", to: "south", version: moving.version }))
        ).toMatchObject({ _tag: "PlaceChanged" })
      })
    )
  })
})
