import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Predicate, Schema } from "effect"
import { parse, parseAllDocuments } from "yaml"

/**
 * Applies an overlay as `kustomize build` does, as far as ours go: resources, namespace, images, generated config maps
 * and patches in JSON's form. Anything else in a kustomization fails. A test compares the result with kustomize's own
 * if that is installed.
 */

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly [field: string]: unknown
}

const none = { default: () => [] }

const Kustomization = Schema.Struct({
  apiVersion: Schema.Literal("kustomize.config.k8s.io/v1beta1"),
  kind: Schema.Literal("Kustomization"),
  namespace: Schema.optional(Schema.String),
  resources: Schema.Array(Schema.String),
  images: Schema.optionalWith(
    Schema.Array(Schema.Struct({ name: Schema.String, newName: Schema.String, newTag: Schema.String })),
    none
  ),
  configMapGenerator: Schema.optionalWith(
    Schema.Array(
      Schema.Struct({
        name: Schema.String,
        behavior: Schema.optionalWith(Schema.Literal("create", "merge"), { default: () => "create" as const }),
        envs: Schema.optionalWith(Schema.Array(Schema.String), none),
        literals: Schema.optionalWith(Schema.Array(Schema.String), none)
      })
    ),
    none
  ),
  patches: Schema.optionalWith(
    Schema.Array(
      Schema.Struct({ target: Schema.Struct({ kind: Schema.String, name: Schema.String }), patch: Schema.String })
    ),
    none
  )
})

const Operations = Schema.Array(
  Schema.Struct({ op: Schema.Literal("add", "replace"), path: Schema.String, value: Schema.Unknown })
)

const clusterWide: ReadonlySet<string> = new Set(["Namespace"])

/** Objects, which are changed in place: they were parsed for this. */
const isObject = (value: unknown): value is Record<string, unknown> => Predicate.isRecord(value)

export const forEachObject = (value: unknown, visit: (object: Record<string, unknown>) => void): void => {
  if (isObject(value)) visit(value)
  if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) forEachObject(part, visit)
  }
}

/** The variables of an environment file's lines. */
export const variables = (lines: ReadonlyArray<string>): Record<string, string> =>
  Object.fromEntries(
    lines
      .filter((line) => line.trim() !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)])
  )

const patch = (manifest: Manifest, text: string): void => {
  for (const { op, path, value } of Schema.decodeUnknownSync(Operations, { onExcessProperty: "error" })(parse(text))) {
    const parts = path.split("/").slice(1)
    const last = parts.pop() ?? ""
    const parent = parts.reduce<unknown>(
      (at, part) => (Array.isArray(at) ? at[Number(part)] : isObject(at) ? at[part] : undefined),
      manifest
    )
    if (Array.isArray(parent) && last === "-" && op === "add") parent.push(value)
    else if (isObject(parent) && (op === "add" || last in parent)) parent[last] = value
    else throw new Error(`The patch changes nothing: ${path}`)
  }
}

export const manifestsIn = (file: string): ReadonlyArray<Manifest> =>
  parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS({ maxAliasCount: 100 }))

/** The manifests of a folder with a kustomization, as they would be applied. The names of config maps have no hash here. */
export const build = (folder: string): ReadonlyArray<Manifest> => {
  const kustomization = Schema.decodeUnknownSync(Kustomization, { onExcessProperty: "error" })(
    parse(readFileSync(join(folder, "kustomization.yaml"), "utf8"))
  )
  const manifests = kustomization.resources.flatMap((resource) =>
    resource.endsWith(".yaml") ? manifestsIn(join(folder, resource)) : build(join(folder, resource))
  )
  const generated = kustomization.configMapGenerator.flatMap(({ behavior, envs, literals, name }) => {
    const lines = envs.flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n"))
    const data = variables([...lines, ...literals])
    if (behavior === "create") return [{ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data }]
    const known = manifests.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === name)?.["data"]
    if (!isObject(known)) throw new Error(`There is no config map ${name} to merge with`)
    Object.assign(known, data)
    return []
  })
  const all = [...manifests, ...generated]
  for (const { patch: text, target } of kustomization.patches) {
    const [kinds, names] = [new RegExp(`^(?:${target.kind})$`), new RegExp(`^(?:${target.name})$`)]
    const found = all.filter(({ kind, metadata }) => kinds.test(kind) && names.test(metadata.name))
    if (found.length === 0) throw new Error(`A patch finds no ${target.kind} ${target.name}`)
    for (const manifest of found) patch(manifest, text)
  }
  forEachObject(all, (object) => {
    const image = kustomization.images.find(({ name }) => name === object["image"])
    if (image !== undefined) object["image"] = `${image.newName}:${image.newTag}`
  })
  const { namespace } = kustomization
  return namespace === undefined
    ? all
    : all.map((manifest) =>
        clusterWide.has(manifest.kind) ? manifest : { ...manifest, metadata: { ...manifest.metadata, namespace } }
      )
}
