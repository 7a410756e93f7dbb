/** The emulator's API version: that of the installed `stripe` package. */
export const apiVersion = "2026-10-28.endive"

/** The last version before an invoice's subscription, payment and price moved. */
export const olderApiVersion = "2024-12-18.acacia"

/** The versions in which snapshots can be sent; at the provider, each webhook endpoint has its own. */
export const apiVersions = [apiVersion, olderApiVersion] as const

export type ApiVersion = (typeof apiVersions)[number]
