import { Effect, Layer, Redacted, Schema } from "effect"
import { Keys } from "../../../identity/keys/Keys.ts"
import type { KeyRecord } from "../../../identity/keys/KeysRepo.ts"
import { Grant, grants } from "../../../identity/keys/Permissions.ts"
import { Organizations } from "../../../identity/organizations/Organizations.ts"
import { PrintableText } from "../../../platform/bounds/Text.ts"
import { environments } from "../../../platform/kit/Environment.ts"
import { type Command, choice, command, form, optional } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import {
  environmentOption,
  exampleOrganization,
  idArgument,
  organizationOption,
  requireOrganization,
  timeOption
} from "../Fields.ts"
import { database, operator } from "../Installation.ts"
import { fields, table, time } from "../Output.ts"
import { rotateMaster } from "./RotateMaster.ts"

/** `keys create | list | revoke`: API keys (contract 2.1 to 2.6). */

const services = Layer.provide(Layer.merge(Keys.layer, Organizations.layer), database)

const maxName = 100

const keyFields = (key: KeyRecord): ReadonlyArray<readonly [string, string]> => [
  ["ID", key.id],
  ["Name", key.name],
  ["Environment", key.environment],
  ["Permissions", key.permissions.join(", ")],
  ["Expires at", time(key.expiresAt)]
]

export const keyCommands: ReadonlyArray<Command> = [
  command({
    name: "keys create",
    summary: "Create an API key; the key itself is shown only this once.",
    example: `--organization ${exampleOrganization} --name Shop --permission '*' --permission 'webhook-endpoints:*' --expires '90 days'`,
    input: Schema.Struct({
      organization: organizationOption,
      name: form(
        PrintableText(maxName),
        `<text of 1 to ${maxName} characters>`,
        "What the key is for.",
        `must have 1 to ${maxName} characters, all printable`
      ),
      permission: form(
        Schema.NonEmptyArray(Grant),
        "<permission>",
        `What the key may do; once per permission: ${grants.join(", ")}. '*' is everything on payments, but neither webhook management nor the audit log.`,
        `must be one of: ${grants.join(", ")}`
      ),
      mode: choice(["test", "live"], "live creates a key for production; without it the key is for the sandbox.").pipe(
        Schema.optionalWith({ exact: true, default: () => "test" as const })
      ),
      expires: optional(
        timeOption(
          1,
          (at, now) => at.getTime() > now && at.getUTCFullYear() < 10_000,
          "When the key stops working: '90 days', 2030-01-31 or 2030-01-31T12:00:00Z. Default: never.",
          "must be in the future: a duration ('90 days'), a date or a time (2030-01-31T12:00:00Z)"
        )
      )
    }),
    services,
    run: Effect.fnUntraced(function* ({ expires, mode, name, organization, permission }) {
      const keys = yield* Keys
      yield* requireOrganization(organization)
      const { key, record } = yield* keys.create({
        organizationId: organization,
        name,
        permissions: permission,
        mode,
        ...(expires === undefined ? {} : { expiresAt: expires }),
        author: yield* operator
      })
      const secret = Redacted.value(key)
      return {
        json: { ...record, key: secret },
        text: `${fields([...keyFields(record), ["Key", secret]])}\n\nThe key is shown only this once: save it now.`
      }
    })
  }),
  command({
    name: "keys list",
    summary: "List the keys of an organization that were not revoked; never the keys themselves.",
    example: `--organization ${exampleOrganization}`,
    input: Schema.Struct({ organization: organizationOption, environment: optional(environmentOption) }),
    services,
    run: Effect.fnUntraced(function* ({ environment, organization }) {
      const keys = yield* Keys
      yield* requireOrganization(organization)
      const found = (yield* Effect.forEach(environment === undefined ? environments : [environment], (one) =>
        keys.list({ organizationId: organization, environment: one })
      )).flat()
      return {
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
      }
    })
  }),
  command({
    name: "keys revoke",
    summary: "Revoke a key at once.",
    example: `--organization ${exampleOrganization} 0198c3a4-0d2b-7f6e-8a1c-5b9d3e7f2a60`,
    argument: "id",
    input: Schema.Struct({
      organization: organizationOption,
      id: idArgument(Schema.UUID, "The key's id, as `keys list` shows it.")
    }),
    services,
    run: Effect.fnUntraced(function* ({ id, organization }) {
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
      return { json: { id, revoked: true }, text: `Key ${id} is revoked and no longer works.` }
    })
  }),
  rotateMaster
]
