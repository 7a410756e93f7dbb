import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Context, Effect, Layer, Redacted } from "effect"
import { Directory } from "../../src/cells/Directory.ts"
import { connectedDirectoryLayer } from "../../src/cells/DirectoryConnection.ts"
import { OrganizationId } from "../../src/kit/Ids.ts"
import { cuttableLine } from "../harness/CuttableLine.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { startRouter } from "./CellsBed.ts"

/**
 * A router's process in front of servers that keep what they were sent, for what no real cell shows: the bytes that reach
 * it, and a cell that stands still in the middle of a request.
 */

/** A request as it reached a cell. */
export interface Seen {
  readonly line: string
  /** Names and values in turn. */
  readonly rawHeaders: ReadonlyArray<string>
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

export interface EchoCell {
  readonly name: string
  readonly url: string
  readonly seen: Array<Seen>
  /** From now on nothing is answered, connections stay open; `thaw` answers what waits. */
  readonly freeze: () => void
  readonly thaw: () => void
  /** The status of all answers from now on; 200 at first. The cell lives on. */
  readonly answerWith: (status: number) => void
  /** How many answers were cut off before their end. */
  readonly cut: () => number
  readonly organization: OrganizationId
}

/** The answer to paths that end like this has no end that a reader would wait for: 64 MB. */
export const endlessPath = "/endless"

const answer = (request: IncomingMessage, response: ServerResponse, status: number): void => {
  if (request.url?.endsWith(endlessPath) === true) {
    const chunk = Buffer.alloc(64 * 1024, "x")
    let left = 1024
    const write = (): void => {
      while (left > 0) {
        left -= 1
        if (!response.write(chunk)) {
          response.once("drain", write)
          return
        }
      }
      response.end()
    }
    write()
    return
  }
  response
    .writeHead(request.url === "/health/live" ? 200 : status, {
      "content-type": "application/json",
      "request-id": "req_of_the_cell"
    })
    .end("{}")
}

const startCell = (name: string) =>
  Effect.acquireRelease(
    Effect.async<Omit<EchoCell, "organization"> & { readonly close: () => void }>((resume) => {
      const seen: Array<Seen> = []
      let isFrozen = false
      let status = 200
      let cut = 0
      let waiting: Array<() => void> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        response.on("close", () => {
          if (!response.writableFinished) cut += 1
        })
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          if (request.url !== "/health/live") {
            seen.push({
              line: `${request.method} ${request.url}`,
              rawHeaders: request.rawHeaders,
              headers: request.headers,
              body: Buffer.concat(chunks).toString("latin1")
            })
          }
          if (isFrozen) waiting.push(() => answer(request, response, status))
          else answer(request, response, status)
        })
        request.on("error", () => {})
      })
      server.keepAliveTimeout = 60_000
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(
          Effect.succeed({
            name,
            url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
            seen,
            freeze: () => {
              isFrozen = true
            },
            thaw: () => {
              isFrozen = false
              for (const go of waiting) go()
              waiting = []
            },
            answerWith: (next) => {
              status = next
            },
            cut: () => cut,
            close: () => {
              server.closeAllConnections()
              server.close()
            }
          })
        )
      })
    }),
    ({ close }) => Effect.sync(close)
  )

/** Cells `north`, the home, and `south`, with an organization and an account each, behind a router. */
export const startRouterBed = (settings: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const database = yield* createTestDatabase()
    const line = yield* cuttableLine(Redacted.value(database.url).replace(/^postgres\w*:/, "http:"))
    const context = yield* Layer.build(connectedDirectoryLayer({ url: database.url, cell: null }))
    const directory = Context.get(context, Directory)
    const startListed = Effect.fnUntraced(function* (name: string) {
      const cell = yield* startCell(name)
      yield* directory.putCell({ name, url: cell.url, home: name === "north" })
      const organization = OrganizationId.make(randomUUID())
      yield* directory.claimingFor(name).claimOrganization(organization)
      yield* directory
        .claimingFor(name)
        .claimAccount({ organizationId: organization, environment: "sandbox" }, `acct_${name}`)
      return { ...cell, organization } satisfies EchoCell
    })
    const north = yield* startListed("north")
    const south = yield* startListed("south")
    const through = new URL(Redacted.value(database.url))
    through.port = new URL(line.url).port
    const router = yield* startRouter(Redacted.make(through.href), settings)
    return { north, south, directory, directoryLine: line, router }
  }).pipe(Effect.orDie)

/** A path of an organization. */
export const pathOf = ({ organization }: Pick<EchoCell, "organization">, rest = "/provider/products"): string =>
  `/v2/organizations/${organization}${rest}`
