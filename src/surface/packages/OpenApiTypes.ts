import { spawn } from "node:child_process"
import { once } from "node:events"
import { createRequire } from "node:module"
import { text } from "node:stream/consumers"
import { fileURLToPath, pathToFileURL } from "node:url"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"

/** The generator prints with TypeScript 5's own printer, which later versions lack: it gets that of another package. */
const typescript5 = () =>
  createRequire(createRequire(import.meta.url).resolve("ts-json-schema-generator")).resolve("typescript")

const script = (typescript: string) => {
  const resolver = `export const resolve = (specifier, context, next) =>
  specifier === "typescript" ? { url: ${JSON.stringify(pathToFileURL(typescript).href)}, shortCircuit: true } : next(specifier, context)`
  return `import { register } from "node:module"
import { text } from "node:stream/consumers"
register("data:text/javascript," + encodeURIComponent(${JSON.stringify(resolver)}))
const { astToString, default: openapiTS } = await import("openapi-typescript")
process.stdout.write(astToString(await openapiTS(await text(process.stdin), { silent: true })))`
}

/** The types of an OpenAPI document, as a module: `paths`, `components` and others. In a process of its own. */
export const openApiTypes = async (document: object): Promise<string> => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", script(typescript5())], {
    cwd: fileURLToPath(packageRoot),
    stdio: ["pipe", "pipe", "inherit"]
  })
  child.stdin.end(JSON.stringify(document))
  const [types, [code]] = await Promise.all([text(child.stdout), once(child, "close")])
  if (code !== 0) throw new Error("The types of the OpenAPI document could not be made")
  return types
}
