import { isIP } from "node:net"
import type { Cell } from "./Directory.ts"

/**
 * The directory's map for a reverse proxy that is there already. A proxy routes by path, cookie and key; what only a body
 * says (the provider's notifications, sign-in by e-mail, one-time tokens) goes to a router, and so does what it does not
 * know, such as pages that one cell has.
 */

/** The cells and organizations of the directory, and the router for everything else. */
export interface RouteMap {
  readonly cells: ReadonlyArray<Cell>
  readonly organizations: ReadonlyArray<{ readonly id: string; readonly cell: string }>
  /** The base URL of a router. */
  readonly router: string
}

const uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

interface Address {
  readonly host: string
  readonly port: number
  /** What the `Host` header says: what answers at the address may serve other names as well. */
  readonly authority: string
  readonly isTls: boolean
}

const addressOf = (url: string): Address => {
  const { host: authority, hostname, port, protocol } = new URL(url)
  const isTls = protocol === "https:"
  const host = hostname.replace(/^\[|\]$/g, "")
  return { host, port: port === "" ? (isTls ? 443 : 80) : Number(port), authority, isTls }
}

/** Where Debian and what comes from it keep the certificate authorities; keys and cookies go to a cell that it vouches for. */
const authorities = "/etc/ssl/certs/ca-certificates.crt"

const quoted = (host: string): string => (host.includes(":") ? `[${host}]` : host)

/** As many fit into nginx's maps as it makes them by default. */
const fewOrganizations = 500

/** For the `http` context of nginx: includes `proxy_pass $payments_scheme$payments_upstream` as its one location. */
export const nginxRoutes = ({ cells, organizations, router }: RouteMap): string => {
  const upstream = (name: string, url: string) => {
    const { host, port } = addressOf(url)
    return [`upstream payments_${name} {`, `  server ${quoted(host)}:${port};`, "  keepalive 64;", "}"].join("\n")
  }
  const scheme = (url: string) => (addressOf(url).isTls ? "https" : "http")
  /** A map from the upstream to something of its URL. */
  const perUpstream = (variable: string, of: (url: string) => string) => [
    `map $payments_upstream $payments_${variable} {`,
    `  default ${of(router)};`,
    ...cells.map(({ name, url }) => `  payments_cell_${name} ${of(url)};`),
    "}"
  ]
  const hasTls = [router, ...cells.map(({ url }) => url)].some((url) => addressOf(url).isTls)
  return [
    "# Written by `connected-payments cells routes`; write it anew after each change of the directory.",
    "# For the http context. Keys of a map are compared without case, so UUIDs may be in either.",
    ...(organizations.length > fewOrganizations
      ? [
          "# Room for all organizations; if your configuration has these lines already, keep the larger ones.",
          `map_hash_max_size ${2 ** Math.ceil(Math.log2(organizations.length))};`,
          "map_hash_bucket_size 1024;"
        ]
      : []),
    upstream("router", router),
    ...cells.map(({ name, url }) => upstream(`cell_${name}`, url)),
    "",
    "# The organization of a path, or of the routing tag in a key or cookie",
    "map $uri $payments_path_organization {",
    '  default "";',
    `  "~*^/v2/organizations/(?<payments_id>${uuid})(?:/|$)" $payments_id;`,
    "}",
    "map $uri $payments_path_kind {",
    "  default router;",
    "  /mcp key;",
    "  /identity/api-key key;",
    ...["session", "sign-in-links", "sign-in/preview", "invitation", "invitation/preview"].map(
      (path) => `  /identity/${path} router;`
    ),
    "  ~^/identity/ cookie;",
    "}",
    "map $http_x_api_key $payments_key_organization {",
    '  default "";',
    `  "~*^[a-z]+_[a-z]+_(?<payments_key_id>${uuid})\\." $payments_key_id;`,
    "}",
    "map $cookie_svc_session $payments_cookie_organization {",
    '  default "";',
    `  "~*^(?<payments_cookie_id>${uuid})\\." $payments_cookie_id;`,
    "}",
    "map $payments_path_kind $payments_tag_organization {",
    '  default "";',
    "  key $payments_key_organization;",
    "  cookie $payments_cookie_organization;",
    "}",
    'map "$payments_path_organization$payments_tag_organization" $payments_upstream {',
    "  default payments_router;",
    ...organizations.map(({ cell, id }) => `  ${id} payments_cell_${cell};`),
    "}",
    ...perUpstream("scheme", scheme),
    ...perUpstream("authority", (url) => addressOf(url).authority),
    ...(hasTls ? perUpstream("tls_name", (url) => addressOf(url).host) : []),
    "# In the server:",
    "#   location / {",
    "#     proxy_pass $payments_scheme://$payments_upstream;",
    "#     proxy_http_version 1.1;",
    '#     proxy_set_header Connection "";',
    "#     proxy_set_header Host $payments_authority;",
    "#     proxy_set_header X-Forwarded-For $remote_addr;",
    "#     proxy_buffering off;",
    "#     proxy_request_buffering off;",
    "#     client_max_body_size 5m;",
    ...(hasTls
      ? [
          "#     proxy_ssl_server_name on;",
          "#     proxy_ssl_name $payments_tls_name;",
          "#     proxy_ssl_verify on;",
          "#     proxy_ssl_verify_depth 3;",
          `#     proxy_ssl_trusted_certificate ${authorities};`
        ]
      : []),
    "#   }",
    ""
  ].join("\n")
}

const cluster = (name: string, url: string) => {
  const { host, isTls, port } = addressOf(url)
  return {
    name,
    type: "STRICT_DNS",
    connect_timeout: "2s",
    load_assignment: {
      cluster_name: name,
      endpoints: [
        { lb_endpoints: [{ endpoint: { address: { socket_address: { address: host, port_value: port } } } }] }
      ]
    },
    ...(isTls
      ? {
          transport_socket: {
            name: "envoy.transport_sockets.tls",
            typed_config: {
              "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
              sni: host,
              common_tls_context: {
                validation_context: {
                  trusted_ca: { filename: authorities },
                  match_typed_subject_alt_names: [
                    { san_type: isIP(host) === 0 ? "DNS" : "IP_ADDRESS", matcher: { exact: host } }
                  ]
                }
              }
            }
          }
        }
      : {})
  }
}

/** A route that streams both ways, for as long as the other sides do. */
const route = (match: object, name: string, authority: string) => ({
  match,
  route: { cluster: name, timeout: "0s", host_rewrite_literal: authority }
})

/**
 * For Envoy: `route_config` for an HTTP connection manager, and its `clusters`, as JSON, which is YAML. It routes
 * by path alone; requests that only a key or a cookie can place go to a router.
 */
export const envoyRoutes = ({ cells, organizations, router }: RouteMap): string => {
  const authorityOf = new Map(cells.map(({ name, url }) => [name, addressOf(url).authority]))
  const toRouter = route({ prefix: "/" }, "payments_router", addressOf(router).authority)
  return JSON.stringify(
    {
      route_config: {
        name: "payments",
        virtual_hosts: [
          {
            name: "payments",
            domains: ["*"],
            routes: [
              ...organizations.flatMap(({ cell, id }) => {
                const authority = authorityOf.get(cell)
                // A prefix that ends in a slash, so that no other path begins like it
                const match = { prefix: `/v2/organizations/${id}/` }
                return authority === undefined ? [] : [route(match, `payments_cell_${cell}`, authority)]
              }),
              toRouter
            ]
          }
        ]
      },
      clusters: [
        cluster("payments_router", router),
        ...cells.map(({ name, url }) => cluster(`payments_cell_${name}`, url))
      ]
    },
    undefined,
    2
  )
}
