import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onServiceWithMail } from "../../harness/SignIn.ts"
import { inDatabase, TestService } from "../../harness/TestService.ts"
import { authorize, comeBack, consent, newOwner, path, read, titleOf, urlIn } from "./Connecting.ts"

/** While the database has no room for changes of a table. */
const whileFull = <A, E, R>(table: string, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestService, ({ sql }) =>
    Effect.acquireUseRelease(
      Effect.orDie(
        sql.unsafe(`
          CREATE FUNCTION payments.full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
          CREATE TRIGGER full_disk BEFORE UPDATE OR DELETE ON payments.${table}
            FOR EACH ROW EXECUTE FUNCTION payments.full_disk()`)
      ),
      () => effect,
      () => Effect.orDie(sql.unsafe("DROP FUNCTION payments.full_disk CASCADE"))
    )
  )

const settings = { roles: { api: true, worker: false }, console: false, failedAuthenticationsPerMinute: 20 } as const

onServiceWithMail(settings)("the page after a consent", (it) => {
  it.effect("says of an outage that it is the service's, and links the account once it is loaded again", function* () {
    const owner = yield* newOwner
    const back = yield* consent(urlIn(yield* authorize(owner)), {})
    for (const table of ["sessions", "account_authorizations"]) {
      // So that the request extends its session
      yield* inDatabase`UPDATE payments.sessions SET last_used_at = now() - interval '2 minutes'`
      const page = yield* whileFull(table, comeBack(back, owner))
      expect([page.status, titleOf(page)], table).toEqual([503, "This could not be finished yet"])
      expect(page.text).toContain("Load this page again")
      expect(page.text).toContain("the payment provider is not the cause")
    }
    expect(titleOf(yield* comeBack(back, owner))).toBe("The account is connected")
    expect(yield* read(owner)).toMatchObject({ status: "connected" })
  })

  it.effect("refuses strangers as what they are, and an address that asks too often until it waits", function* () {
    const { passTime, request } = yield* TestService
    const statuses = new Set<number>()
    const knock = (n: number) =>
      request("GET", `${path}/oauth/return?state=${"A".repeat(43)}&code=ac_1`, {
        headers: { cookie: `__Host-svc_session=${"A".repeat(40)}${String(n).padStart(3, "0")}` }
      })
    const pages = yield* Effect.forEach(
      Array.from({ length: 60 }, (_, n) => n),
      knock
    )
    for (const page of pages) statuses.add(page.status)
    expect([...statuses].toSorted()).toEqual([401, 429])
    const last = pages.at(-1)
    expect(last?.status).toBe(429)
    expect(Number(last?.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(last === undefined ? "" : titleOf(last)).toBe("Too many requests")
    yield* passTime("1 minute")
    expect((yield* knock(61)).status).toBe(401)
  })
})
