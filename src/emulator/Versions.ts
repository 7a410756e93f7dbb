/** The API version that the emulator speaks: that of the installed `stripe` package. */
export const apiVersion = "2026-10-28.endive"

/**
 * The last version before the changes of 2025, which moved what an invoice and its lines say of subscription, payment
 * and price.
 */
export const olderApiVersion = "2024-12-18.acacia"

/** The versions that snapshots can be sent in: at the provider each notification endpoint has its own. */
export const apiVersions = [apiVersion, olderApiVersion] as const

/** One of {@link apiVersions}. */
export type ApiVersion = (typeof apiVersions)[number]
