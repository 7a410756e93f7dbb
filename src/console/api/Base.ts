/** Paths of the console and the service. A proxy may serve both below a path, given by the page's `<base>`. */

/** The console's path without a trailing slash, such as `/console`. */
export const consolePath = new URL(document.baseURI).pathname.replace(/\/$/, "")

/** The service's path without a trailing slash; empty at the root. */
export const servicePath = consolePath.replace(/\/console$/, "")

export const environmentIn = (path: string): "sandbox" | "production" | undefined => {
  const [, environment] = /^\/(sandbox|production)(?:\/|$)/.exec(path) ?? []
  return environment === "sandbox" || environment === "production" ? environment : undefined
}

export const currentPath = (): string => {
  const { pathname } = location
  return pathname.startsWith(consolePath) ? pathname.slice(consolePath.length) || "/" : "/"
}

/** Whether a path stays inside the console; guards against redirects to other sites. */
export const isOwnPath = (path: string): boolean => /^\/(?![/\\])[^\s\\]*$/.test(path) && path.length <= 2000
