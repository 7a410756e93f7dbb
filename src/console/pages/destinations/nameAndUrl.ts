/**
 * Checks of a destination's name and URL while typing (contract 5.2). Only the service knows whether local destinations
 * are allowed and whether the host name resolves. Pure.
 */

const isLocal = (hostname: string): boolean =>
  hostname === "localhost" || hostname.endsWith(".localhost") || /^127\./.test(hostname) || hostname === "[::1]"

const parsed = (text: string): URL | undefined => {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

/** Why the service will refuse the URL; undefined if no problem is known. */
export const urlProblem = (written: string): string | undefined => {
  const text = written.trim()
  if (text === "") return undefined
  if (text.length > 2048) return "A URL has at most 2048 characters"
  const url = parsed(text)
  if (url === undefined || /[\s\\]/.test(text)) return "Write a whole URL, such as https://shop.example/webhooks"
  if (url.username !== "" || url.password !== "") return "Leave the user name and the password out"
  if (text.includes("?")) return "Leave the query out: an identifier of the receiver belongs in the path"
  if (text.includes("#")) return "Leave the part from # on out"
  // An operator may allow these in the sandbox
  if (isLocal(url.hostname)) return undefined
  if (url.protocol !== "https:") return "It has to begin with https://"
  if (url.port !== "") return "It has to use port 443, the default of https: leave the port out"
  return undefined
}

export const suggestedName = (url: string): string => parsed(url.trim())?.hostname.slice(0, 100) ?? ""
