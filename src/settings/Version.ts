import { createRequire } from "node:module"
import { Schema } from "effect"

const manifest = Schema.decodeUnknownSync(Schema.Struct({ version: Schema.NonEmptyString }))(
  createRequire(import.meta.url)("../../package.json")
)

/** The version of this package, for the user agent and the telemetry. */
export const version = manifest.version
