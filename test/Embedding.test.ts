import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { embeddedEventsLayer, embeddedServiceLayer } from "../src/app/Embedding.ts"
import { Organizations } from "../src/identity/organizations/Organizations.ts"
import { OrganizationId } from "../src/platform/kit/Ids.ts"
import { databaseLayer } from "../src/platform/storage/Database.ts"
import { createTestDatabase } from "./harness/TestDatabase.ts"

// Two services in one program, each with its own database

const masterKeys = [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(3)) }] as const

const events = (type: string) =>
  embeddedEventsLayer({ source: "shop", catalog: [{ type, description: "Something happened." }], masterKeys })

const service = () =>
  embeddedServiceLayer({
    publicUrl: "http://127.0.0.1",
    masterKeys,
    provider: {
      sandbox: Option.none(),
      production: Option.none(),
      oauthClientIds: {},
      apiUrl: Option.none(),
      checkoutSuccessUrl: "https://shop.example/thanks",
      checkoutCancelUrl: "https://shop.example/cart"
    },
    settings: { roles: { api: false, worker: false } }
  })

const parts = Effect.all({ organizations: Organizations, sql: SqlClient.SqlClient })
type Parts = Effect.Effect.Success<typeof parts>

class One extends Context.Tag("test/One")<One, Parts>() {}
class Other extends Context.Tag("test/Other")<Other, Parts>() {}

const database = () => Layer.unwrapScoped(Effect.map(createTestDatabase(), ({ url }) => databaseLayer({ url })))

/** Registers a tenant and returns its id with those that the database has. */
const adopt = ({ organizations, sql }: Parts) =>
  Effect.gen(function* () {
    const id = OrganizationId.make(randomUUID())
    yield* organizations.adopt({ id, name: "Bakery", author: { kind: "operator", id: "shop" } })
    const stored = yield* sql<{ readonly id: string }>`SELECT id FROM payments.organizations`
    return { adopted: [id], stored: stored.map((row) => row.id) }
  })

const together = <E>(
  make: (name: string) => Layer.Layer<Organizations, E, Layer.Layer.Context<ReturnType<typeof events>>>
) =>
  Effect.gen(function* () {
    const one = Layer.effect(One, parts).pipe(Layer.provide(make("order.shipped")), Layer.provide(database()))
    const other = Layer.effect(Other, parts).pipe(Layer.provide(make("order.returned")), Layer.provide(database()))
    const both = yield* Layer.build(Layer.merge(one, other))
    for (const each of [Context.get(both, One), Context.get(both, Other)]) {
      const { adopted, stored } = yield* adopt(each)
      expect(stored).toEqual(adopted)
    }
  })

describe("two services in one program", () => {
  it.scopedLive("each send a team's own events from their own database", () => together(events), 60_000)

  it.scopedLive("each are whole on their own database", () => together(service), 60_000)
})
