import { randomUUID } from "node:crypto"
import { SqlClient, type Statement } from "@effect/sql"
import { expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Option } from "effect"
import { Directory } from "../../src/cells/Directory.ts"
import { connectedDirectoryLayer } from "../../src/cells/DirectoryConnection.ts"
import { keyOf, makeRoutes } from "../../src/cells/router/Routes.ts"
import { OrganizationId } from "../../src/kit/Ids.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"

/** A client whose answers to statements with this text are kept back, once they are there, until the gate opens. */
const keptBack = (
  sql: SqlClient.SqlClient,
  text: string,
  onAnswer: Effect.Effect<unknown>,
  gate: Effect.Effect<void>
): SqlClient.SqlClient =>
  new Proxy(sql, {
    apply: (target, self, args: ReadonlyArray<unknown>) => {
      const statement: Statement.Statement<object> = Reflect.apply(target, self, args)
      return statement.compile()[0].includes(text)
        ? Effect.tap(statement, () => Effect.zipRight(onAnswer, gate))
        : statement
    }
  })

it.scopedLive("an answer that is older than an organization's move does not bring its old cell back", () =>
  Effect.gen(function* () {
    const { url } = yield* createTestDatabase()
    const context = yield* Layer.build(connectedDirectoryLayer({ url, cell: null }))
    const directory = Context.get(context, Directory)
    for (const name of ["north", "south"]) {
      yield* directory.putCell({ name, url: `http://${name}.example`, home: name === "north" })
    }
    const answered = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    const sql = keptBack(
      Context.get(context, SqlClient.SqlClient),
      "split_part",
      Deferred.succeed(answered, undefined),
      Deferred.await(gate)
    )
    const { cells, find } = yield* makeRoutes.pipe(
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.provide(Context.omit(SqlClient.SqlClient)(context))
    )
    const listed = (count: number) =>
      eventually(
        `${count} cells`,
        Effect.sync(() => (cells().length === count ? Option.some(true) : Option.none()))
      )
    yield* listed(2)
    const organizationId = OrganizationId.make(randomUUID())
    const claiming = directory.claimingFor("north")
    yield* claiming.claimAccount({ organizationId, environment: "sandbox" }, "acct_moving")
    // What is heard after the claim: the claim has been heard, too
    yield* directory.putCell({ name: "west", url: "http://west.example", home: false })
    yield* listed(3)

    const account = find(keyOf.account("sandbox", "acct_moving"))
    yield* Deferred.await(answered)
    const { version } = yield* directory.setMoving(organizationId, "north", "south")
    yield* directory.flip(organizationId, { from: "north", to: "south", version })
    const organization = Effect.promise(async () => find(keyOf.organization(organizationId)))
    yield* eventually(
      "the new cell",
      Effect.map(organization, (found) => (found === "south" ? Option.some(found) : Option.none()))
    )
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Effect.promise(async () => account)).toBe("south")
    expect(yield* organization).toBe("south")
  })
)

it.scopedLive("a list of the cells that is older than a change of them does not bring the old ones back", () =>
  Effect.gen(function* () {
    const { url } = yield* createTestDatabase()
    const context = yield* Layer.build(connectedDirectoryLayer({ url, cell: null }))
    const directory = Context.get(context, Directory)
    const put = (name: string) => directory.putCell({ name, url: `http://${name}.example`, home: name === "north" })
    yield* put("north")
    const answered = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    let asked = 0
    let late = 0
    const cells = Effect.suspend(() => {
      asked += 1
      return asked === late
        ? Effect.tap(directory.cells, () =>
            Effect.zipRight(Deferred.succeed(answered, undefined), Deferred.await(gate))
          )
        : directory.cells
    })
    const routes = yield* Effect.provide(makeRoutes, Context.add(context, Directory, { ...directory, cells }))
    const names = () => routes.cells().map(({ name }) => name)
    // When it begins, it asks once, once more when it listens, and begins to ask regularly
    yield* eventuallyTrue("the first lists", () => asked === 3 && names().length === 1)
    late = 4
    yield* put("east")
    yield* Deferred.await(answered)
    yield* put("south")
    yield* eventuallyTrue("the new cell", () => names().includes("south"))
    yield* Deferred.succeed(gate, undefined)
    yield* Effect.sleep("50 millis")
    expect(names()).toEqual(["east", "north", "south"])
  })
)
