import type { Account } from "./Records.ts"
import type { Scoped } from "./store/Store.ts"

export const isConnected = (platform: Scoped, account: string): boolean =>
  platform.get("connection", account)?.revoked !== true

/** The account, if the platform may act for it. */
export const connectedAccount = (platform: Scoped, id: string): Account | undefined =>
  isConnected(platform, id) ? platform.get("account", id) : undefined
