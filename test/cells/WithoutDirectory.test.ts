import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import pg from "pg"
import { vi } from "vitest"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { newEmail, onServiceWithMail, signInOwner } from "../harness/SignIn.ts"
import { TestService } from "../harness/TestService.ts"

const statements: Array<string> = []
const query = pg.Client.prototype.query
vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...args: ReadonlyArray<unknown>) {
  const [first] = args
  const text = typeof first === "object" && first !== null && "text" in first ? first.text : first
  if (typeof text === "string") statements.push(text)
  // The many overloads of `query` come down to its arguments as they are
  return Reflect.apply(query, this, args)
} as pg.Client["query"])

/** Every module that a module loads at once, without what it may load later. */
const loadedBy = (start: string): ReadonlySet<string> => {
  const loaded = new Set([start])
  for (const path of loaded) {
    if (!path.endsWith(".ts")) continue
    const text = readFileSync(path, "utf8")
    for (const [, source] of text.matchAll(/^(?:import|export)\s+(?!type\s)(?:[^"';]*?\sfrom\s+)?"(\.[^"]+)"/gm)) {
      loaded.add(resolve(dirname(path), source ?? ""))
    }
  }
  return loaded
}

onServiceWithMail()("an installation without a directory", (it) => {
  it("loads nothing of it", () => {
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))
    const cells = [...loadedBy(main)].filter((path) => path.includes("/src/cells/"))
    expect(cells.map((path) => path.replace(/.*\/src\/cells\//, "")).toSorted()).toEqual(["Claims.ts", "RoutingTag.ts"])
  })

  it.effect("asks it nothing, and gives keys, sessions and links no tag", () =>
    Effect.gen(function* () {
      const { makeKey, options, organization, services } = yield* TestService
      const owner = yield* signInOwner
      yield* owner.request("POST", "/identity/invitations", { body: { email: newEmail(), role: "viewer" } })
      yield* Context.get(services, Organizations).create({ name: "Second", ownerEmail: newEmail() })
      expect(owner.cookie).toMatch(/^svc_session=[A-Za-z0-9_-]{43}$/)
      expect(yield* makeKey(organization.id, ["*"])).toMatch(/^pk_test_[A-Za-z0-9_-]{43}$/)
      expect(options.cell).toBeUndefined()
      expect(statements.length).toBeGreaterThan(20)
      expect(statements.filter((text) => text.includes("payments_directory"))).toEqual([])
    })
  )
})
