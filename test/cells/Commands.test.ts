import { randomUUID } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { Directory } from "../../src/cells/Directory.ts"
import { connectedDirectoryLayer } from "../../src/cells/DirectoryConnection.ts"
import { OrganizationId } from "../../src/kit/Ids.ts"
import { cliHere } from "../cli/CliProcess.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"

class DirectoryUrl extends Context.Tag("test/DirectoryUrl")<DirectoryUrl, string>() {}

const onDirectory = layer(
  Layer.scoped(
    DirectoryUrl,
    Effect.map(createTestDatabase(), ({ url }) => Redacted.value(url))
  ),
  { excludeTestServices: true, timeout: "60 seconds" }
)

const cells = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(DirectoryUrl, (url) => cliHere({ DIRECTORY_URL: url }, "cells", ...args))

onDirectory("the commands of cells", (it) => {
  it.effect("add and list cells, on a directory that was empty", () =>
    Effect.gen(function* () {
      const none = yield* cells("list")
      expect(none.stdout, none.stderr).toBe("There are no cells.\n")
      const added = yield* cells("add", "north", "--url", "http://north.internal:8080/")
      expect(added, added.stderr).toMatchObject({ code: 0, stderr: "" })
      expect(added.stdout).toContain("and is the home")
      expect((yield* cells("add", "south", "--url", "https://south.internal", "--json")).json).toEqual({
        name: "south",
        url: "https://south.internal",
        home: false
      })
      expect((yield* cells("list", "--json")).json).toEqual([
        { name: "north", url: "http://north.internal:8080", home: true, organizations: 0 },
        { name: "south", url: "https://south.internal", home: false, organizations: 0 }
      ])
    })
  )

  it.effect("refuse names and URLs that can't be a cell's, and say what is missing", () =>
    Effect.gen(function* () {
      for (const [name, url] of [
        ["North", "http://north.internal"],
        ["-north", "http://north.internal"],
        ["a".repeat(33), "http://north.internal"],
        ["north", "north.internal:8080"],
        ["north", "ftp://north.internal"],
        ["north", "http://north.internal/path"],
        ["north", "http://user:password@north.internal"]
      ] as const) {
        const refused = yield* cells("add", name, "--url", url)
        expect([name, url, refused.code]).toEqual([name, url, 2])
        expect(refused.stderr).not.toContain("password@")
      }
      const without = yield* cliHere({}, "cells", "list")
      expect(without).toMatchObject({ code: 1, stdout: "" })
      expect(without.stderr).toContain("DIRECTORY_URL is not set")
    })
  )

  it.effect("compare a cell only once its schema is there, and say how to create it", () =>
    Effect.gen(function* () {
      const empty = yield* createTestDatabase()
      const settings = {
        DIRECTORY_URL: yield* DirectoryUrl,
        CELL_NAME: "north",
        DATABASE_URL: Redacted.value(empty.url)
      }
      const early = yield* cliHere(settings, "cells", "reconcile")
      expect(early).toMatchObject({ code: 1, stdout: "" })
      expect(early.stderr).toContain("Run: connected-payments migrate")
      expect((yield* cliHere(settings, "migrate")).code).toBe(0)
      const compared = yield* cliHere(settings, "cells", "reconcile")
      expect(compared, compared.stderr).toMatchObject({
        code: 0,
        stdout: "0 records of the cell north were compared: 0 not claimed, 0 not used, 0 taken by others.\n"
      })
    }).pipe(Effect.scoped)
  )

  it.effect("write the map for a proxy: every organization to its cell, everything else to a router", () =>
    Effect.gen(function* () {
      const url = yield* DirectoryUrl
      const context = yield* Layer.build(connectedDirectoryLayer({ url: Redacted.make(url), cell: null }))
      const directory = Context.get(context, Directory)
      const [first, second] = [OrganizationId.make(randomUUID()), OrganizationId.make(randomUUID())]
      yield* directory.claimingFor("north").claimOrganization(first)
      yield* directory.claimingFor("south").claimOrganization(second)
      const router = ["--router", "http://router.internal:8080"]
      const nginx = (yield* cells("routes", "--format", "nginx", ...router)).stdout
      expect(nginx).toContain(`  ${first} payments_cell_north;`)
      expect(nginx).toContain(`  ${second} payments_cell_south;`)
      expect(nginx).toContain("  default payments_router;")
      expect(nginx).toMatch(/upstream payments_cell_south \{\n {2}server south\.internal:443;/)
      expect(nginx).toContain("  payments_cell_south https;")
      for (const line of nginx.split("\n").filter((one) => one.trim() !== "" && !one.trim().startsWith("#"))) {
        expect(line.trim()).toMatch(/[;{}]$/)
      }
      const envoy = JSON.parse((yield* cells("routes", "--format", "envoy", ...router)).stdout)
      const [host] = envoy.route_config.virtual_hosts
      expect(host.routes).toEqual(
        expect.arrayContaining([
          {
            match: { prefix: `/v2/organizations/${second}/` },
            route: { cluster: "payments_cell_south", timeout: "0s", host_rewrite_literal: "south.internal" }
          }
        ])
      )
      expect(host.routes.at(-1)).toEqual({
        match: { prefix: "/" },
        route: { cluster: "payments_router", timeout: "0s", host_rewrite_literal: "router.internal:8080" }
      })
      const names = envoy.clusters.map(({ name }: { readonly name: string }) => name)
      // A cell is only who its certificate says it is
      expect(JSON.stringify(envoy.clusters)).toContain(
        '{"trusted_ca":{"filename":"/etc/ssl/certs/ca-certificates.crt"},"match_typed_subject_alt_names":[{"san_type":"DNS","matcher":{"exact":"south.internal"}}]}'
      )
      for (const { route } of host.routes) expect(names).toContain(route.cluster)
      expect((yield* cells("routes", "--format", "nginx")).code).toBe(2)
    }).pipe(Effect.scoped)
  )
})
