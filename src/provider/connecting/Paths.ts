/** The pages that the provider leads the browser back to. The paths are settled with the provider, so they stay as they are. */
export const connectingPaths = {
  returned: "/identity/account/return",
  refresh: "/identity/account/refresh",
  authorized: "/identity/account/oauth/return"
} as const
