/** The emulator's API version: that of the installed `stripe` package. */
export const apiVersion = "2026-10-28.endive"

/**
 * The last version before the changes of 2025, which moved an invoice's and its lines' subscription, payment and price.
 */
export const olderApiVersion = "2024-12-18.acacia"

/** The versions in which snapshots can be sent; at the provider, each webhook endpoint has its own. */
export const apiVersions = [apiVersion, olderApiVersion] as const

export type ApiVersion = (typeof apiVersions)[number]
