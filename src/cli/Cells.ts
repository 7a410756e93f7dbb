import { Args, Command, HelpDoc, Options } from "@effect/cli"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option } from "effect"
import { cellNameForm, Directory } from "../cells/Directory.ts"
import { connectedDirectoryLayer } from "../cells/DirectoryConnection.ts"
import { reconcile as compare, type Difference } from "../cells/Reconcile.ts"
import { envoyRoutes, nginxRoutes } from "../cells/RouteExport.ts"
import { readDirectoryUrl } from "../settings/Settings.ts"
import { CommandFailed } from "./Failure.ts"
import { formOption } from "./Fields.ts"
import { databaseAsFound, Installation, withCurrentSchema } from "./Installation.ts"
import { columns, jsonOption, show, table } from "./Output.ts"
import { described, type KnownCommand } from "./Synopsis.ts"

/** `cells list | add | reconcile | routes`: the directory of cells, for the operator. */

/** The directory of the settings. */
const directory = Layer.unwrapEffect(
  Effect.flatMap(readDirectoryUrl, (directoryUrl) =>
    Option.match(directoryUrl, {
      onNone: () => new CommandFailed({ message: "DIRECTORY_URL is not set: there is no directory of cells." }),
      onSome: (url) => Effect.succeed(connectedDirectoryLayer({ url, cell: null, required: true, poolSize: 2 }))
    })
  )
)

const nameArgument = Args.text({ name: "name" }).pipe(
  Args.mapEffect((name) =>
    cellNameForm.test(name)
      ? Effect.succeed(name)
      : Effect.fail(HelpDoc.p("A cell's name has 1 to 32 lower-case letters, digits and hyphens, the first a letter"))
  ),
  Args.withDescription("The cell's name, as its CELL_NAME.")
)

const baseUrl = (text: string): Option.Option<string> => {
  if (!URL.canParse(text)) return Option.none()
  const { hash, origin, password, pathname, protocol, search, username } = new URL(text)
  const isBase = /^https?:$/.test(protocol) && pathname === "/" && `${search}${hash}${username}${password}` === ""
  return isBase ? Option.some(origin) : Option.none()
}

const urlOption = (name: string) =>
  formOption(name, baseUrl, "must be an http:// or https:// URL without a path").pipe(Options.withPseudoName("<url>"))

const list = described(
  Command.make("list", { json: jsonOption }, ({ json }) =>
    Effect.gen(function* () {
      const cells = yield* Effect.flatMap(Directory, ({ cells }) => cells)
      const sql = yield* SqlClient.SqlClient
      const counts = yield* sql<{ cell: string; count: number }>`
        SELECT cell, count(*)::int AS count FROM payments_directory.organizations GROUP BY cell`
      const counted = cells.map((cell) => ({
        ...cell,
        organizations: counts.find((row) => row.cell === cell.name)?.count ?? 0
      }))
      yield* show(json, {
        json: counted,
        text: table(
          ["NAME", "URL", "HOME", "ORGANIZATIONS"],
          counted.map(({ home, name, organizations, url }) => [name, url, home ? "yes" : "", String(organizations)]),
          "There are no cells."
        )
      })
    })
  ).pipe(Command.provide(directory)),
  { command: "cells list", summary: "List the cells of the directory.", example: "--json" }
)

const homeOption = Options.boolean("home").pipe(
  Options.withDescription("Make it the home: the cell that takes new people, and what no cell is known to have.")
)

const add = described(
  Command.make(
    "add",
    {
      name: nameArgument,
      url: urlOption("url").pipe(Options.withDescription("The URL at which routers reach it.")),
      home: homeOption,
      json: jsonOption
    },
    ({ home, json, name, url }) =>
      Effect.gen(function* () {
        const cell = yield* Effect.flatMap(Directory, ({ putCell }) => putCell({ name, url, home }))
        yield* show(json, {
          json: cell,
          text: `The cell ${name} is at ${url}${cell.home ? ", and is the home" : ""}.`
        })
      })
  ).pipe(Command.provide(directory)),
  {
    command: "cells add",
    summary: "Add a cell to the directory, or change its URL. The first cell is the home.",
    example: "north --url http://payments-north.internal:8080"
  }
)

const problems: Record<Difference["problem"], string> = {
  unclaimed: "this cell has it, the directory does not know it",
  unused: "the directory says that this cell has it, but it does not",
  taken: "another organization or cell has it, too: compare both by hand"
}

const repairOption = Options.boolean("repair").pipe(
  Options.withDescription("Claim what is not claimed and release what is not used; without it, nothing is changed.")
)

const reconcile = described(
  Command.make("reconcile", { repair: repairOption, json: jsonOption }, ({ json, repair }) =>
    Effect.gen(function* () {
      const { cell } = yield* Installation
      if (Option.isNone(cell)) {
        return yield* new CommandFailed({ message: "Set DIRECTORY_URL and CELL_NAME: they say which cell to compare." })
      }
      yield* withCurrentSchema
      const { directoryUrl, name } = cell.value
      const known = yield* Layer.build(
        connectedDirectoryLayer({ url: directoryUrl, cell: name, required: true, poolSize: 2 })
      )
      const { compared, counts, differences } = yield* compare({
        cell: name,
        cellSql: yield* SqlClient.SqlClient,
        directorySql: Context.get(known, SqlClient.SqlClient),
        claiming: Context.get(known, Directory).claimingFor(name),
        repair
      })
      const fixable = counts.unclaimed + counts.unused
      const repaired = repair ? ` Repaired: ${fixable}.` : " Nothing was changed: add --repair."
      yield* show(json, {
        json: { cell: name, compared, ...counts, repaired: repair, differences },
        text: [
          columns(differences.map(({ kind, name, problem }) => [kind, name, problems[problem]])),
          `${compared} records of the cell ${name} were compared: ${counts.unclaimed} not claimed, ${counts.unused} not used, ${counts.taken} taken by others.${fixable === 0 ? "" : repaired}`
        ]
          .filter((text) => text !== "")
          .join("\n")
      })
      if (counts.taken > 0) {
        return yield* new CommandFailed({ message: "Some of what this cell has is another's in the directory." })
      }
    }).pipe(Effect.scoped)
  ).pipe(Command.provide(Layer.provideMerge(databaseAsFound, Installation.layer))),
  {
    command: "cells reconcile",
    summary: "Compare what this cell has with the directory, and repair what differs.",
    example: "--repair"
  }
)

const formatOption = Options.choice("format", ["nginx", "envoy"] as const).pipe(
  Options.withDescription("The proxy whose configuration is written.")
)

const routes = described(
  Command.make(
    "routes",
    {
      format: formatOption,
      router: urlOption("router").pipe(
        Options.withDescription("A router's URL, for what only the body of a request says.")
      ),
      json: jsonOption
    },
    ({ format, json, router }) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const cells = yield* Effect.flatMap(Directory, ({ cells }) => cells)
        const organizations = yield* sql<{ id: string; cell: string }>`
          SELECT id, cell FROM payments_directory.organizations ORDER BY id`
        const map = { cells, organizations, router }
        yield* show(json, { json: map, text: format === "nginx" ? nginxRoutes(map) : envoyRoutes(map) })
      })
  ).pipe(Command.provide(directory)),
  {
    command: "cells routes",
    summary: "Write the directory's map as the configuration of a reverse proxy.",
    example: "--format nginx --router http://payments-router.internal:8080"
  }
)

/** The command with its subcommands. */
export const cells = Command.make("cells").pipe(
  Command.withDescription("Administer the directory of cells."),
  Command.withSubcommands([list.command, add.command, reconcile.command, routes.command])
)

/** The commands, for the help. */
export const cellCommands: ReadonlyArray<KnownCommand> = [list.known, add.known, reconcile.known, routes.known]
