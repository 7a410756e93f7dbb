import { readdir } from "node:fs/promises"
import { basename } from "node:path"
import { fileURLToPath } from "node:url"
import type { OutputFile, Plugin } from "esbuild"

/** Bundles the console's sources for browsers. The bundler is a development dependency, loaded only if it is needed. */

export interface BundledFile {
  readonly name: string
  readonly contentType: string
  readonly body: Uint8Array
}

export interface Bundle {
  /** The small script that runs before anything is drawn: it shows the chosen appearance. */
  readonly theme: string
  readonly script: string
  /** The scripts that it imports at once, so that the page can request them in parallel. */
  readonly imports: ReadonlyArray<string>
  readonly style: string
  readonly files: ReadonlyArray<BundledFile>
  /** The further scripts that each page loads, by its module's path in the console. */
  readonly pages: Readonly<Record<string, ReadonlyArray<string>>>
}

/** Browsers of the last three years. */
const target = ["es2022", "chrome109", "firefox115", "safari16.4"]

const contentTypes: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8"
}

const contentTypeOf = (name: string): string =>
  contentTypes[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream"

/** The stylesheets that all others build on, in their order; the others follow by name. */
const firstStyles = ["tokens.css", "base.css", "components.css", "shell.css"]

const stylesIn = async (folder: URL): Promise<string> => {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".css"))
  const others = names.filter((name) => !firstStyles.includes(name)).toSorted()
  return [...firstStyles, ...others].map((name) => `@import "./${name}";`).join("\n")
}

interface Output {
  readonly entryPoint?: string
  readonly imports: ReadonlyArray<{ readonly path: string; readonly kind: string }>
}

const importsOf = (outputs: Readonly<Record<string, Output>>, start: string): ReadonlyArray<string> => {
  const found = new Set([start])
  for (const path of found) {
    for (const { kind, path: next } of outputs[path]?.imports ?? []) {
      if (kind === "import-statement") found.add(next)
    }
  }
  found.delete(start)
  return [...found]
}

/** One stylesheet of all, in the order that they need. */
const allStyles = (styles: URL): Plugin => ({
  name: "all-styles",
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^all-styles$/ }, () => ({ path: "all-styles", namespace: "all-styles" }))
    onLoad({ filter: /.*/, namespace: "all-styles" }, async () => ({
      contents: await stylesIn(styles),
      loader: "css",
      resolveDir: fileURLToPath(styles)
    }))
  }
})

/** The parts of the page by their roles, from what the bundler wrote. */
const bundleOf = (outputs: Readonly<Record<string, Output>>, files: ReadonlyArray<OutputFile>): Bundle => {
  const made = (entryPoint: string): string => {
    const [path] = Object.entries(outputs).find(([, output]) => output.entryPoint === entryPoint) ?? []
    if (path === undefined) throw new Error(`The bundler made nothing of ${entryPoint}`)
    return path
  }
  const script = made("main.tsx")
  return {
    theme: basename(made("theme.ts")),
    script: basename(script),
    imports: importsOf(outputs, script).map((path) => basename(path)),
    style: basename(made("all-styles:all-styles")),
    files: files.map(({ contents, path }) => ({
      name: basename(path),
      contentType: contentTypeOf(path),
      body: contents
    })),
    pages: Object.fromEntries(
      Object.entries(outputs).flatMap(([path, { entryPoint }]) =>
        entryPoint?.startsWith("pages/") === true
          ? [[entryPoint, [path, ...importsOf(outputs, path)].map((name) => basename(name))]]
          : []
      )
    )
  }
}

/** Bundles the console's sources in a folder. */
export const bundle = async (sources: URL): Promise<Bundle> => {
  const { build, stop } = await import("esbuild")
  const common = {
    absWorkingDir: fileURLToPath(sources),
    outdir: "assets",
    entryNames: "[name]-[hash]",
    bundle: true,
    platform: "browser",
    target,
    minify: true,
    legalComments: "none",
    metafile: true,
    write: false,
    logLevel: "silent"
  } as const
  try {
    const modules = await build({
      ...common,
      entryPoints: [
        { in: "main.tsx", out: "main" },
        { in: "all-styles", out: "app" }
      ],
      plugins: [allStyles(new URL("styles/", sources))],
      chunkNames: "part-[hash]",
      splitting: true,
      format: "esm",
      jsx: "automatic",
      jsxImportSource: "preact"
    })
    // A classic script, which a page waits for, shares no chunks with the modules
    const classic = await build({ ...common, entryPoints: ["theme.ts"], format: "iife" })
    return bundleOf({ ...modules.metafile.outputs, ...classic.metafile.outputs }, [
      ...modules.outputFiles,
      ...classic.outputFiles
    ])
  } finally {
    // Otherwise the bundler's process runs for as long as this one
    await stop()
  }
}
