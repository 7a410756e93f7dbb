import { version } from "../../platform/settings/Version.ts"

/**
 * The packages that a running service offers for download. None of them is in a public registry: an install line that
 * named one there would run the code of whoever registers that name.
 */

/** The path of the list of packages; the archives are below it. */
export const packagesPath = "/packages" as const

export const packageSummaries = {
  "connected-payments-client":
    "Calls the API: for Effect 3, or by fetch with the types of the OpenAPI document. It needs effect and @effect/platform, or nothing.",
  "connected-payments-webhooks": "Verifies and receives webhook events, on Node and in TypeScript. No dependencies.",
  "connected-payments-cli": "The commands listen, trigger and mcp, for a developer's machine. No dependencies."
} as const
export type PackageName = keyof typeof packageSummaries

/** The file name of a package's archive, as `npm pack` names it. It holds the version, so its content never changes. */
export const archiveName = (name: PackageName): string => `${name}-${version}.tgz`

export const archivePath = (name: PackageName): string => `${packagesPath}/${archiveName(name)}`
