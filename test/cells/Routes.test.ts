import { randomUUID } from "node:crypto"
import { SqlClient, type Statement } from "@effect/sql"
import { expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Option } from "effect"
import { Directory } from "../../src/cells/Directory.ts"
import { connectedDirectoryLayer } from "../../src/cells/DirectoryConnection.ts"
import { keyOf, makeRoutes } from "../../src/cells/router/Routes.ts"
import { OrganizationId } from "../../src/kit/Ids.ts"
import { eventually } from "../harness/Eventually.ts"
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
