/** The host of a URL without the brackets of an IPv6 address: as used for connections and in telemetry. */
export const bareHostname = (hostname: string): string =>
  hostname.startsWith("[") && hostname.endsWith("]") ? hostname.slice(1, -1) : hostname

export const serverOf = ({ hostname, port, protocol }: URL): { readonly host: string; readonly port: number } => ({
  host: bareHostname(hostname),
  port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port)
})

/** The same in OpenTelemetry's attribute names. */
export const serverAttributes = (url: URL): { readonly "server.address": string; readonly "server.port": number } => {
  const { host, port } = serverOf(url)
  return { "server.address": host, "server.port": port }
}

/**
 * Whether browsers keep the session's cookie of a service at this URL: over HTTPS always, over plain HTTP only from the
 * machine that they run on. (Safari does not even then.)
 */
export const isKeptByBrowsers = (publicUrl: string): boolean => {
  const { hostname, protocol } = new URL(publicUrl)
  return protocol === "https:" || /^((.+\.)?localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
