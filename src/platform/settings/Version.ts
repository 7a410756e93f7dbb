import { readFileSync } from "node:fs"
import { Schema } from "effect"
import { packageRoot } from "./PackageFolders.ts"

const manifest = Schema.decodeUnknownSync(Schema.parseJson(Schema.Struct({ version: Schema.NonEmptyString })))(
  readFileSync(new URL("package.json", packageRoot), "utf8")
)

export const version = manifest.version
