import { Console, Context, Effect, type Layer, ParseResult, Predicate, Schema, SchemaAST } from "effect"
import { type CommandFailed, WrongUsage } from "./Failure.ts"

export interface Parameter {
  readonly key: string
  /** Such as `--owner-email`, or `<id>` for an argument. */
  readonly name: string
  /** The form of its value, such as `<uuid>`; empty for a flag. */
  readonly form: string
  readonly description: string
  readonly required: boolean
  readonly repeated: boolean
  readonly choices: ReadonlyArray<string>
}

/** Who runs the command, as `--as` says; undefined if it does not. */
export class RunAs extends Context.Reference<RunAs>()("connected-payments/cli/RunAs", {
  defaultValue: (): string | undefined => undefined
}) {}

export const isArgument = ({ name }: Parameter): boolean => name.startsWith("<")

/** Its name, and the form of its value. */
export const written = (parameter: Parameter): string =>
  isArgument(parameter) ? parameter.name : `${parameter.name} ${parameter.form}`.trim()

export type Given = Readonly<Record<string, string | true | ReadonlyArray<string>>>

interface Synopsis {
  /** Such as `keys create`. */
  readonly name: string
  readonly summary: string
  readonly example: string
}

/** An entry of the command table, from which names, options, help and completion are derived. */
export interface Command extends Synopsis {
  readonly parameters: ReadonlyArray<Parameter>
  /** Fails with `WrongUsage`, before anything is done, if a value is missing or malformed. */
  readonly run: (given: Given) => Effect.Effect<void, unknown>
}

export interface Shown {
  readonly json: unknown
  readonly text: string
  /** Further sentences, on standard error. */
  readonly notes?: ReadonlyArray<string>
  /** As `notes`, but omitted with `--json`. */
  readonly hints?: ReadonlyArray<string>
  /** Set if the command failed although it has a result. */
  readonly failure?: CommandFailed
}

/** The form of a value; its rule completes a sentence that begins with the option's name ("must be a UUID"). */
export const form = <A, I>(
  schema: Schema.Schema<A, I>,
  name: string,
  description: string,
  rule: string | ((given: unknown) => string)
): Schema.Schema<A, I> =>
  schema.annotations({
    title: name,
    description,
    message: ({ actual }) => ({ message: Predicate.isString(rule) ? rule : rule(actual), override: true })
  })

export const choice = <const Word extends string>(words: ReadonlyArray<Word>, description: string) =>
  form(Schema.Literal(...words), `<${words.join("|")}>`, description, `must be ${words.join(" or ")}`)

/** An option that may be omitted: the input then lacks its key. */
export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** An option without a value: true if it is given. */
export const flag = (description: string) =>
  Schema.optionalWith(Schema.Boolean.annotations({ description }), { exact: true, default: () => false })

const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(literalsOf) : SchemaAST.isLiteral(ast) ? [String(ast.literal)] : []

const parameterOf = (key: string, field: Schema.Struct.Field, argument: string | undefined): Parameter => {
  const isOptional = Schema.isPropertySignature(field)
  const inner = isOptional && Predicate.hasProperty(field, "from") ? field.from : field
  const { ast } = Schema.isSchema(inner) ? inner : Schema.Unknown
  const item = SchemaAST.isTupleType(ast) ? (ast.rest[0]?.type ?? ast) : ast
  const [description, title] = [SchemaAST.getDescriptionAnnotation(ast), SchemaAST.getTitleAnnotation(ast)]
  return {
    key,
    name: key === argument ? `<${key}>` : `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    form: SchemaAST.isBooleanKeyword(ast) ? "" : title._tag === "Some" ? title.value : "<text>",
    description: description._tag === "Some" ? description.value : "",
    required: !isOptional,
    repeated: item !== ast,
    choices: literalsOf(item)
  }
}

interface CommandInput<A, I> {
  readonly argument?: string
  readonly input: Schema.Schema<A, I> & { readonly fields: Schema.Struct.Fields }
}

const problem = (
  { _tag, message, path: [key] }: ParseResult.ArrayFormatterIssue,
  of: Command["parameters"]
): string => {
  const parameter = of.find((one) => one.key === key)
  if (parameter === undefined) return message
  if (_tag === "Missing") return `${written(parameter)} is missing.`
  return isArgument(parameter) ? message : `${parameter.name} ${message}.`
}

/** A command that runs until it is stopped, and prints its own output. */
export const process = <A, I, E>({
  argument,
  input,
  run,
  ...synopsis
}: Synopsis & CommandInput<A, I> & { readonly run: (input: A) => Effect.Effect<void, E> }): Command => {
  const parameters = Object.entries(input.fields).map(([key, field]) => parameterOf(key, field, argument))
  return {
    ...synopsis,
    parameters,
    run: (given) =>
      Schema.decodeUnknown(input, { errors: "all" })(given).pipe(
        Effect.mapError((error) => {
          const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
          const problems = new Set(issues.map((issue) => problem(issue, parameters)))
          return new WrongUsage({ message: [...problems].join("\n"), command: synopsis.name })
        }),
        Effect.flatMap(run)
      )
  }
}

const json: Parameter = {
  key: "json",
  name: "--json",
  form: "",
  description: "Print JSON for machines.",
  required: false,
  repeated: false,
  choices: []
}

export const command = <A, I, E, R, E2>({
  run,
  services,
  ...taking
}: Synopsis &
  CommandInput<A, I> & {
    readonly services: Layer.Layer<R, E2>
    readonly run: (input: A) => Effect.Effect<Shown, E, R>
  }): Command => {
  const listed = (asJson: boolean) =>
    process({
      ...taking,
      run: (input) =>
        Effect.gen(function* () {
          const { failure, hints = [], json, notes = [], text } = yield* run(input)
          yield* Console.log(asJson ? JSON.stringify(json, undefined, 2) : text)
          yield* Effect.forEach(asJson ? notes : [...notes, ...hints], (note) => Console.error(note))
          if (failure !== undefined) yield* failure
        }).pipe(Effect.provide(services))
    })
  return {
    ...listed(false),
    parameters: [...listed(false).parameters, json],
    run: (given) => listed(given["json"] === true).run(given)
  }
}
