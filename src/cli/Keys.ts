import { Command, Options } from "@effect/cli"
import { Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import { environments } from "../events/Environment.ts"
import { type KeyRecord, Keys } from "../identity/keys/Keys.ts"
import { Grant, grants } from "../identity/keys/Permissions.ts"
import { Organizations } from "../identity/organizations/Organizations.ts"
import { CommandFailed } from "./Failure.ts"
import {
  durationOrTime,
  environmentOption,
  idArgument,
  moment,
  organizationOption,
  parsedOption,
  requireOrganization,
  textOption
} from "./Fields.ts"
import { database, Installation } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { fields, jsonOption, show, table, time } from "./Output.ts"
import { rotateMaster } from "./RotateMaster.ts"
import { described, exampleOrganization, type KnownCommand } from "./Synopsis.ts"

/** `keys create | list | revoke`: API keys (contract 2.1 to 2.6). */

const services = Layer.merge(Keys.layer, Organizations.layer).pipe(
  Layer.provide(database),
  Layer.provide(Installation.layer)
)

const permissionsOption = Options.text("permission").pipe(
  Options.withPseudoName("<permission>"),
  Options.withDescription(
    `What the key may do; once per permission: ${grants.join(", ")}. '*' is everything on payments, but neither webhook management nor the audit log.`
  ),
  Options.atLeast(1),
  Options.map((permissions) => [...new Set(permissions)]),
  parsedOption(
    "permission",
    Schema.decodeUnknownOption(Schema.NonEmptyArray(Grant)),
    `must be one of: ${grants.join(", ")}`
  )
)

const modeOption = Options.choice("mode", ["test", "live"] as const).pipe(
  Options.withDefault("test" as const),
  Options.withDescription("live creates a key for production; without it the key is for the sandbox.")
)

const momentOf = (text: string, now: number): Option.Option<Date> =>
  Option.orElse(moment(text), () =>
    Option.map(
      Option.filter(Duration.decodeUnknown(text), Duration.isFinite),
      (duration) => new Date(now + Duration.toMillis(duration))
    )
  ).pipe(Option.filter((date) => date.getTime() > now && date.getUTCFullYear() < 10_000))

const expiresOption = Options.text("expires").pipe(
  Options.withPseudoName(durationOrTime),
  Options.withDescription("When the key stops working: '90 days', 2030-01-31 or 2030-01-31T12:00:00Z. Default: never."),
  parsedOption(
    "expires",
    (text) => momentOf(text, Date.now()),
    "must be in the future: a duration ('90 days'), a date or a time (2030-01-31T12:00:00Z)"
  ),
  Options.optional
)

const keyFields = (key: KeyRecord): ReadonlyArray<readonly [string, string]> => [
  ["ID", key.id],
  ["Name", key.name],
  ["Environment", key.environment],
  ["Permissions", key.permissions.join(", ")],
  ["Expires at", time(key.expiresAt)]
]

const create = described(
  Command.make(
    "create",
    {
      organization: organizationOption,
      name: textOption("name", 100),
      permissions: permissionsOption,
      mode: modeOption,
      expires: expiresOption,
      json: jsonOption
    },
    ({ expires, json, mode, name, organization, permissions }) =>
      Effect.gen(function* () {
        const keys = yield* Keys
        yield* requireOrganization(organization)
        const { key, record } = yield* keys.create({
          organizationId: organization,
          name,
          permissions,
          mode,
          ...(Option.isSome(expires) ? { expiresAt: expires.value } : {}),
          author: yield* operator
        })
        const secret = Redacted.value(key)
        yield* show(json, {
          json: { ...record, key: secret },
          text: `${fields([...keyFields(record), ["Key", secret]])}\n\nThe key is shown only this once: save it now.`
        })
      })
  ).pipe(Command.provide(services)),
  {
    command: "keys create",
    summary: "Create an API key; the key itself is shown only this once.",
    example: `--organization ${exampleOrganization} --name Shop --permission '*' --permission 'webhook-endpoints:*' --expires '90 days'`
  }
)

const list = described(
  Command.make(
    "list",
    { organization: organizationOption, environment: Options.optional(environmentOption), json: jsonOption },
    ({ environment, json, organization }) =>
      Effect.gen(function* () {
        const keys = yield* Keys
        yield* requireOrganization(organization)
        const wanted = environments.filter((one) => Option.getOrElse(environment, () => one) === one)
        const found = (yield* Effect.forEach(wanted, (one) =>
          keys.list({ organizationId: organization, environment: one })
        )).flat()
        yield* show(json, {
          json: found,
          text: table(
            ["ID", "NAME", "ENVIRONMENT", "KEY", "PERMISSIONS", "EXPIRES", "LAST USED", "CREATED BY"],
            found.map((key) => [
              key.id,
              key.name,
              key.environment,
              `${key.prefix}…${key.lastFour}`,
              key.permissions.join(","),
              time(key.expiresAt),
              time(key.lastUsedAt),
              key.createdBy === null ? "-" : `${key.createdBy.kind} ${key.createdBy.id}`
            ]),
            "There are no keys."
          )
        })
      })
  ).pipe(Command.provide(services)),
  {
    command: "keys list",
    summary: "List the keys of an organization that were not revoked; never the keys themselves.",
    example: `--organization ${exampleOrganization}`
  }
)

const revoke = described(
  Command.make(
    "revoke",
    {
      organization: organizationOption,
      id: idArgument(Schema.UUID, "The key's id, as `keys list` shows it."),
      json: jsonOption
    },
    ({ id, json, organization }) =>
      Effect.gen(function* () {
        const keys = yield* Keys
        const author = yield* operator
        yield* requireOrganization(organization)
        // A key belongs to one environment only
        const revoked = yield* Effect.forEach(environments, (environment) =>
          keys.revoke({ organizationId: organization, environment }, id, author)
        )
        if (!revoked.includes(true)) {
          return yield* new CommandFailed({
            message: `Organization ${organization} has no key ${id}, or it was revoked already.`
          })
        }
        yield* show(json, { json: { id, revoked: true }, text: `Key ${id} is revoked and no longer works.` })
      })
  ).pipe(Command.provide(services)),
  {
    command: "keys revoke",
    summary: "Revoke a key at once.",
    example: `--organization ${exampleOrganization} 0198c3a4-0d2b-7f6e-8a1c-5b9d3e7f2a60`
  }
)

/** The command with its subcommands. */
export const keys = Command.make("keys").pipe(
  Command.withDescription("Create, list and revoke API keys; move stored secrets to a new master key."),
  Command.withSubcommands([create.command, list.command, revoke.command, rotateMaster.command])
)

/** The commands, for the help. */
export const keyCommands: ReadonlyArray<KnownCommand> = [create.known, list.known, revoke.known, rotateMaster.known]
