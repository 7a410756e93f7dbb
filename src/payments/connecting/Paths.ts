/** The pages that the provider returns browsers to. The paths are registered there, so they must not change. */
export const connectingPaths = {
  returned: "/identity/account/return",
  refresh: "/identity/account/refresh",
  authorized: "/identity/account/oauth/return"
} as const
