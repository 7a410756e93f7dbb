/**
 * Where the console and the service are: a proxy may serve both below a path, which the page's `<base>` tells.
 */

/** The console's path without a slash at the end, such as `/console`. */
export const consolePath = new URL(document.baseURI).pathname.replace(/\/$/, "")

/** The service's path without a slash at the end; empty if it is at the root. */
export const servicePath = consolePath.replace(/\/console$/, "")

/** The environment that a path below the console names; undefined on pages outside of a workspace. */
export const environmentIn = (path: string): "sandbox" | "production" | undefined => {
  const [, environment] = /^\/(sandbox|production)(?:\/|$)/.exec(path) ?? []
  return environment === "sandbox" || environment === "production" ? environment : undefined
}

/** The path below the console that the address bar shows. */
export const currentPath = (): string => {
  const { pathname } = location
  return pathname.startsWith(consolePath) ? pathname.slice(consolePath.length) || "/" : "/"
}

/** Whether a path stays below the console: what a link of somebody else names is not followed out of it. */
export const isOwnPath = (path: string): boolean => /^\/(?![/\\])[^\s\\]*$/.test(path) && path.length <= 2000
