/** The path and the query of a request's target, in any of its forms, as the router reads them. Pure. */

/** Where a path ends and the query begins. */
const endOfPath = /[?;#]/

/** The scheme and host of a target in absolute form, up to its path. */
const origin = /^https?:\/\/.*?\//

/** A target without scheme and host, and where its path ends. */
const read = (url: string): readonly [target: string, end: number] => {
  const target = url.startsWith("/") ? url : url.replace(origin, "/")
  const end = target.search(endOfPath)
  return [target, end === -1 ? target.length : end]
}

/**
 * The path of a request without its query: decoded, except for escaped separators and percent signs, since its
 * parameters are decoded once more. Undefined if its escapes can't be decoded.
 */
const decodedPathOf = (url: string): string | undefined => {
  const [target, end] = read(url)
  const path = target.slice(0, end)
  if (!path.includes("%")) return path
  try {
    return decodeURI(path.replaceAll("%25", "%2525"))
  } catch {
    return undefined
  }
}

/** `decodedPathOf`, or the path as it was sent if its escapes can't be decoded. */
export const pathOf = (url: string): string => {
  const decoded = decodedPathOf(url)
  if (decoded !== undefined) return decoded
  const [target, end] = read(url)
  return target.slice(0, end)
}

/** The text after a request's path, without the character that separates them. */
export const queryTextOf = (url: string): string => {
  const [target, end] = read(url)
  return target.slice(end + 1)
}

/** Whether a request's target is a stream of events, however it is spelled. */
export const isEventStream = (target: string): boolean => /\/event-stream\/?$/.test(pathOf(target))

/** The paths of the API, which take a key or a session. Not those of the tool server and the service's own pages. */
const apiPath = /^\/(?:v2|identity)\//

/** Whether a path, without its query, is the API's. */
export const isApiPath = (path: string): boolean => apiPath.test(path)
