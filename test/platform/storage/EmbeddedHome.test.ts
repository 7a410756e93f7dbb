import { mkdir, readlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { describe } from "vitest"
import { linkLibraries, prepareBinaries } from "../../../src/platform/storage/embedded/EmbeddedHome.ts"
import { freePort } from "../../../src/platform/storage/embedded/FreePort.ts"
import { expect, it } from "../../harness/Tests.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

const isLinux = process.platform === "linux"

describe("prepareBinaries", () => {
  it.effect.each([
    ["win32-x64", "unsupported_platform", "Windows"],
    ["sunos-x64", "unsupported_platform", "sunos-x64"],
    [isLinux ? "darwin-arm64" : "linux-ppc64", "package_missing", "--include=optional"]
  ] as const)("refuses clearly on %s", function* ([platform, reason, hint]) {
    const refused = yield* Effect.flip(prepareBinaries({ path: tmpdir(), account: Option.none() }, platform))
    expect(refused.reason).toBe(reason)
    expect(refused.message).toContain("DATABASE_URL")
    expect(refused.message).toContain(hint)
  })
})

describe("linkLibraries", () => {
  it.scoped("makes the links that an installation without scripts lacks, as often as it is called", function* () {
    const root = yield* temporaryDirectory
    const lib = join(root, "native", "lib")
    yield* Effect.promise(async () => {
      await mkdir(lib, { recursive: true })
      await writeFile(join(lib, "libx.so.1.2"), "library")
      const links = [{ source: "native/lib/libx.so.1.2", target: "native/lib/libx.so.1" }]
      await writeFile(join(root, "native", "pg-symlinks.json"), JSON.stringify(links))
    })
    yield* linkLibraries(root)
    yield* linkLibraries(root)
    expect(yield* Effect.promise(() => readlink(join(lib, "libx.so.1")))).toBe("libx.so.1.2")
    yield* Effect.promise(() => writeFile(join(root, "native", "pg-symlinks.json"), "{"))
    expect((yield* Effect.flip(linkLibraries(root))).message).toContain("reinstall")
  })
})

it.scoped("a free port is none that an outgoing connection may take before the server listens", function* () {
  const ports = yield* Effect.replicateEffect(freePort("127.0.0.1"), 100)
  expect(ports.filter((port) => port < 1024 || port >= 32_768)).toEqual([])
  expect(yield* Effect.flip(freePort("192.0.2.1"))).toMatchObject({ code: "EADDRNOTAVAIL" })
})
