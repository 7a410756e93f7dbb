import { copyFile, cp, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect } from "effect"
import { openApiDocument } from "../../src/surface/docs/OpenApiDocument.ts"
import { builtOpenApi } from "../../src/surface/docs/OpenApiText.ts"
import { bundlePrograms } from "../../src/surface/packages/ProgramBundles.ts"

/** The sources could not be built; `cause` holds what the bundler said. */
export class BuildFailed extends Data.TaggedError("BuildFailed")<{ readonly cause: unknown }> {}

const repository = fileURLToPath(new URL("../../", import.meta.url))

const programs = [
  "src/app/main.ts",
  "src/app/cli/main.ts",
  "src/emulator/main.ts",
  "test/platform/storage/fixtures/holdCluster.ts",
  "test/platform/storage/fixtures/migrate.ts"
]

/** Bundles the programs that tests start, with the packages they use, into `directory`, as `npm run build` bundles them. */
export const buildInto = (directory: string): Effect.Effect<void, BuildFailed> =>
  Effect.tryPromise({
    try: async () => {
      // What is looked for at run time is where the sources have it: the version, the embedded PostgreSQL, the guides, the console
      await symlink(join(repository, "node_modules"), join(directory, "node_modules"))
      await copyFile(join(repository, "package.json"), join(directory, "package.json"))
      await cp(join(repository, "src", "docs"), join(directory, "src", "docs"), {
        recursive: true,
        filter: (file) => !file.endsWith(".ts")
      })
      await writeFile(join(directory, "src", builtOpenApi), JSON.stringify(openApiDocument()))
      await symlink(join(repository, "src", "console"), join(directory, "src", "console"))
      await bundlePrograms({ programs, base: ".", directory, chunks: "src/chunks" })
    },
    catch: (cause) => new BuildFailed({ cause })
  })
