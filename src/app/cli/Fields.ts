import { Duration, Effect, Either, Option, ParseResult, Schema } from "effect"
import { Organizations } from "../../identity/organizations/Organizations.ts"
import { Email } from "../../identity/Schemas.ts"
import { environments } from "../../platform/kit/Environment.ts"
import { OrganizationId } from "../../platform/kit/Ids.ts"
import { Instant } from "../../platform/kit/Instant.ts"
import { choice, form } from "./Command.ts"
import { CommandFailed } from "./Failure.ts"

/** Options and arguments that several commands have. */

export const exampleOrganization = "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40"

export const organizationOption = form(
  OrganizationId,
  "<uuid>",
  "The organization's id.",
  "must be an organization's id (a UUID)"
)

export const environmentOption = choice(environments, "sandbox is the provider's test mode, production its live mode.")

/** An e-mail address, in lower case. */
export const emailOption = (description: string) => form(Email, "<address>", description, "must be an e-mail address")

export const idArgument = <A extends string>(schema: Schema.Schema<A, string>, description: string) =>
  form(schema, "<uuid>", description, (given) => `'${given}' is not an id: an id is a UUID`)

export const accountOption = (description: string) =>
  form(
    Schema.String.pipe(Schema.pattern(/^acct_\w{1,64}$/)),
    "<acct_…>",
    description,
    "must be the id of a provider account (acct_…)"
  )

/** An http or https URL without a user name or password, with which no request could be made. */
export const PlainHttpUrl = Schema.URL.pipe(
  Schema.filter(({ password, protocol, username }) => /^https?:$/.test(protocol) && username === "" && password === "")
)

export const variableOption = (description: string) =>
  form(
    Schema.String.pipe(Schema.pattern(/^[A-Za-z_]\w*$/)),
    "<name>",
    description,
    "must be the name of an environment variable"
  )

/** The short forms of an instant: without its time, which is then 00:00 UTC, or without its seconds. */
const shortened: ReadonlyArray<readonly [form: RegExp, full: string]> = [
  [/^(\d{4}-\d\d-\d\d)$/, "$1T00:00:00Z"],
  [/^(\d{4}-\d\d-\d\dT\d\d:\d\d)(Z|[+-]\d\d:\d\d)$/, "$1:00$2"]
]

/** A date or time as people write it: 2030-01-31 or 2030-01-31T12:00:00Z. */
const instantOf = (text: string): Option.Option<Date> =>
  Schema.decodeOption(Instant)(shortened.reduce((written, [form, full]) => written.replace(form, full), text))

/** A time, or a duration from now: in the future, or (`-1`) in the past. */
export const timeOption = (
  direction: 1 | -1,
  accepts: (at: Date, now: number) => boolean,
  description: string,
  rule: string
) =>
  form(
    Schema.transformOrFail(Schema.String, Schema.DateFromSelf, {
      strict: true,
      decode: (text, _, ast) => {
        const now = Date.now()
        return instantOf(text).pipe(
          Option.orElse(() =>
            Option.map(
              Option.filter(Duration.decodeUnknown(text), Duration.isFinite),
              (duration) => new Date(now + direction * Duration.toMillis(duration))
            )
          ),
          Option.filter((at) => accepts(at, now)),
          Either.fromOption(() => new ParseResult.Type(ast, text))
        )
      },
      encode: (at) => Either.right(at.toISOString())
    }),
    "<duration|ISO 8601 date or time>",
    description,
    rule
  )

export const requireOrganization = (id: OrganizationId) =>
  Effect.flatMap(Organizations, (organizations) =>
    Effect.if(organizations.exists(id), {
      onTrue: () => Effect.void,
      onFalse: () => new CommandFailed({ message: `There is no organization ${id}.` })
    })
  )
