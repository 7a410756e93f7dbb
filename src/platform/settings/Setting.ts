import { readFileSync } from "node:fs"
import { Config, ConfigError, ConfigProvider, Effect, Either, type Option } from "effect"
import { errorCode } from "../errors/ErrorCode.ts"
import type { Form } from "./Forms.ts"

/** A setting, defined once: its reader, the type of its value, and its row in the table of settings. */

export interface SettingRow {
  readonly name: string
  /** The value if it is not set. */
  readonly fallback: string
  readonly about: string
  /** Empty if there are none. */
  readonly bounds: string
  /** `required`: `MODE=production` does not start without it; `refused`: it does not start with it. */
  readonly production?: "required" | "refused"
  /** The setting that names a file with the value, if it is a secret. */
  readonly file?: string
}

/** The reader of one or more settings, with their rows. */
export interface Documented<A> extends Config.Config<A> {
  readonly rows: ReadonlyArray<SettingRow>
}

export interface Setting<A> extends Documented<A> {
  readonly row: SettingRow
}

/** The parts of a definition besides name, form and default. */
type About = Pick<SettingRow, "about" | "production">

const withRow = <A>(config: Config.Config<A>, row: SettingRow): Setting<A> =>
  Object.assign(config, { row, rows: [row] })

const valueIn = <A>({ config }: Form<A>, name: string, text: string): Either.Either<A, ConfigError.ConfigError> =>
  Effect.runSync(Effect.either(ConfigProvider.fromMap(new Map([[name, text]])).load(Config.nested(config, name))))

/** A default's value: a default with another form fails when the module is loaded. */
const valueOf = <A>(form: Form<A>, text: string): A => Either.getOrThrow(valueIn(form, "DEFAULT", text))

const readText = (path: string, setting: string): Either.Either<string, ConfigError.ConfigError> =>
  Either.try({
    try: () => readFileSync(path, "utf8").trim(),
    catch: (cause) => ConfigError.InvalidData([setting], `the file can't be read (${errorCode(cause)})`)
  })

/** Reads a setting; a secret that is not set also from a file that `NAME_FILE` names, as platforms mount them. */
const configOf = <A>(form: Form<A>, name: string): Config.Config<A> => {
  const own = Config.nested(form.config, name)
  const file = fileSetting(form, name).file
  return file === undefined
    ? own
    : Config.orElseIf(own, {
        if: ConfigError.isMissingDataOnly,
        orElse: () =>
          Config.mapOrFail(Config.string(file), (path) =>
            Either.flatMap(readText(path, file), (text) => valueIn(form, name, text))
          )
      })
}

const fileSetting = (form: Form<unknown>, name: string): Pick<SettingRow, "file"> =>
  form.isSecret ? { file: `${name}_FILE` } : {}

/**
 * Defines a setting that always has a value: a default as an operator would write it, or a `value` that can't be
 * written, with the table's text for it in `unset`.
 */
export const setting = <A>(
  name: string,
  form: Form<A>,
  definition: About & ({ readonly default: string | number | boolean } | { readonly unset: string; readonly value: A })
): Setting<A> => {
  const { about, production } = definition
  const [value, fallback] =
    "unset" in definition
      ? [definition.value, definition.unset]
      : [valueOf(form, String(definition.default)), `\`${definition.default}\``]
  return withRow(Config.withDefault(configOf(form, name), value), {
    name,
    fallback,
    about,
    bounds: form.bounds,
    ...fileSetting(form, name),
    ...(production === undefined ? {} : { production })
  })
}

/** Defines a setting that may be absent; `unset` is the table's text in that case. */
export const optional = <A>(
  name: string,
  form: Form<A>,
  { unset, ...about }: About & { readonly unset: string }
): Setting<Option.Option<A>> =>
  withRow(Config.option(configOf(form, name)), {
    name,
    fallback: unset,
    bounds: form.bounds,
    ...fileSetting(form, name),
    ...about
  })

/** Settings under the program's names for them. */
export type Fields = Readonly<Record<string, Documented<unknown>>>

export type ValuesOf<F extends Fields> = { readonly [K in keyof F]: Config.Config.Success<F[K]> }

export interface Group<F extends Fields> extends Documented<ValuesOf<F>> {
  readonly fields: F
}

/** Settings that are read together: if several are wrong, the error names them all. */
export function group<const F extends Fields>(fields: F): Group<F>
export function group(fields: Fields): Group<Fields> {
  return Object.assign(Config.all(fields), { fields, rows: Object.values(fields).flatMap(({ rows }) => rows) })
}

/** The reason why settings conflict, although each has the right form. */
interface Conflict {
  readonly of: Pick<SettingRow, "name">
  readonly message: string
}

/** Settings whose values are combined into one, unless they conflict. */
export const combined = <A, B>(
  settings: Documented<A>,
  combine: (values: A) => Either.Either<B, Conflict>
): Documented<B> =>
  Object.assign(
    Config.mapOrFail(settings, (values) =>
      Either.mapLeft(combine(values), ({ message, of }) => ConfigError.InvalidData([of.name], message))
    ),
    { rows: settings.rows }
  )
