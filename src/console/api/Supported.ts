import type { OperationKey } from "./Call.ts"

const unsupported = new Set(
  globalThis.document?.querySelector('meta[name="unsupported"]')?.getAttribute("content")?.split(" ")
)

/** Whether the installation's payment provider has an operation. */
export const isSupported = (operation: OperationKey): boolean => !unsupported.has(operation)
