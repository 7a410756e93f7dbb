import { Args, HelpDoc, Options, ValidationError } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { PrintableText } from "../bounds/Text.ts"
import { environments } from "../events/Environment.ts"
import { Organizations } from "../identity/organizations/Organizations.ts"
import { Email } from "../identity/Schemas.ts"
import { OrganizationId } from "../kit/Ids.ts"
import { Instant } from "../kit/Instant.ts"
import { CommandFailed } from "./Failure.ts"

/** Options and arguments that several commands have; a value with the wrong form is wrong usage. */

/** Parses an option's value further; an invalid one is refused with this sentence. */
export const parsedOption = <A, B>(name: string, parse: (value: A) => Option.Option<B>, refusal: string) =>
  Options.mapEffect((value: A) =>
    Option.match(parse(value), {
      onNone: () => Effect.fail(ValidationError.invalidValue(HelpDoc.p(`--${name} ${refusal}`))),
      onSome: Effect.succeed
    })
  )

/** A text option with a form. */
export const formOption = <A>(name: string, parse: (text: string) => Option.Option<A>, refusal: string) =>
  Options.text(name).pipe(parsedOption(name, parse, refusal))

/** An http or https URL; with a user name or a password in it, no request could be made of it. */
export const plainHttpUrl = (text: string): Option.Option<URL> =>
  Option.filter(
    Schema.decodeOption(Schema.URL)(text),
    ({ password, protocol, username }) => /^https?:$/.test(protocol) && username === "" && password === ""
  )

/** The help's name for a value that is a duration or an instant. */
export const durationOrTime = "<duration|ISO 8601 date or time>"

/** The short forms of an instant: without its time, which is then 00:00 UTC, or without its seconds. */
const shortened: ReadonlyArray<readonly [form: RegExp, full: string]> = [
  [/^(\d{4}-\d\d-\d\d)$/, "$1T00:00:00Z"],
  [/^(\d{4}-\d\d-\d\dT\d\d:\d\d)(Z|[+-]\d\d:\d\d)$/, "$1:00$2"]
]

/** A date or time as people write it: 2030-01-31 or 2030-01-31T12:00:00Z. */
export const moment = (text: string): Option.Option<Date> =>
  Schema.decodeOption(Instant)(shortened.reduce((written, [form, full]) => written.replace(form, full), text))

/** `--organization`. */
export const organizationOption = formOption(
  "organization",
  Schema.decodeOption(OrganizationId),
  "must be an organization's id (a UUID)"
).pipe(Options.withPseudoName("<uuid>"), Options.withDescription("The organization's id."))

/** `--environment`. */
export const environmentOption = Options.choice("environment", environments).pipe(
  Options.withDescription("sandbox is the provider's test mode, production its live mode.")
)

/** An e-mail address, in lower case. */
export const emailOption = (name: string) =>
  formOption(name, Schema.decodeOption(Email), "must be an e-mail address").pipe(Options.withPseudoName("<address>"))

/** A name as the API accepts it: 1 to `max` printable characters once trimmed. */
export const textOption = (name: string, max: number) =>
  formOption(
    name,
    (text) => Schema.decodeOption(PrintableText(max))(text),
    `must have 1 to ${max} characters, all printable`
  ).pipe(Options.withPseudoName(`<text of 1 to ${max} characters>`))

/** An id as the command's argument. */
export const idArgument = <A extends string>(schema: Schema.Schema<A, string>, description: string) =>
  Args.text({ name: "id" }).pipe(
    Args.mapEffect((text) =>
      Option.match(Schema.decodeOption(schema)(text), {
        onNone: () => Effect.fail(HelpDoc.p(`'${text}' is not an id: an id is a UUID`)),
        onSome: Effect.succeed
      })
    ),
    Args.withDescription(description)
  )

/** Fails with a sentence if there is no such organization. */
export const requireOrganization = (id: OrganizationId) =>
  Effect.flatMap(Organizations, (organizations) =>
    Effect.if(organizations.exists(id), {
      onTrue: () => Effect.void,
      onFalse: () => new CommandFailed({ message: `There is no organization ${id}.` })
    })
  )
