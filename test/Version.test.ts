import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { OpenApi } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { version } from "../src/platform/settings/Version.ts"
import { Api } from "../src/surface/contract/Api.ts"

// The User-Agent of deliveries and the commands take theirs from `version`

const root = fileURLToPath(new URL("../", import.meta.url))
const text = (file: string) => readFileSync(join(root, file), "utf8")
const json = (file: string): { readonly version: string } => JSON.parse(text(file))

const { workspaces }: { readonly workspaces: ReadonlyArray<string> } = JSON.parse(text("package.json"))

/** What a file says in each place that the pattern finds. */
const named = (file: string, pattern: RegExp) => [...text(file).matchAll(pattern)].map(([, name = ""]) => name)

describe("the version", () => {
  it("is the same in the package, its workspaces, the lock file, the image's label, the OpenAPI document and the change log", () => {
    expect(json("package.json").version).toBe(version)
    expect(json("package-lock.json").version).toBe(version)
    for (const workspace of workspaces) expect(json(`${workspace}/package.json`).version, workspace).toBe(version)
    expect(named("Dockerfile", /image\.version=(\S+)/g)).toEqual([version])
    expect(OpenApi.fromApi(Api).info.version).toBe(version)
    expect(named("CHANGELOG.md", /^## \[(\d\S*)\]/gm)[0]).toBe(version)
  })

  it("is the same in the packages that the guides install, and in the example for Kubernetes", () => {
    const installed = readdirSync(join(root, "src/docs/guides")).flatMap((file) =>
      named(`src/docs/guides/${file}`, /payments(?:-\w+)?-(\d\S*)\.tgz/g)
    )
    const images = named("src/operating/kubernetes/overlays/example/kustomization.yaml", /newTag: (\S+)/g)
    expect(installed.length).toBeGreaterThan(0)
    expect(new Set([...installed, ...images])).toEqual(new Set([version]))
  })
})
