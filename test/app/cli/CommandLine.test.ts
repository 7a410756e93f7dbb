import { execFileSync } from "node:child_process"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, FastCheck, Schema } from "effect"
import { cli } from "../../../src/app/cli/Cli.ts"
import { choice, process as command, flag, form, optional } from "../../../src/app/cli/Command.ts"
import { understand } from "../../../src/app/cli/CommandLine.ts"
import { completionScript } from "../../../src/app/cli/Completion.ts"
import { WrongUsage } from "../../../src/app/cli/Failure.ts"

const text = form(Schema.NonEmptyString, "<text>", "A text.", "must not be empty")

/** A command that fails with what it was given. */
const known = <A, I>(
  name: string,
  input: Schema.Schema<A, I> & { readonly fields: Schema.Struct.Fields },
  argument?: string
) =>
  command({
    name,
    summary: "",
    example: "",
    input,
    ...(argument === undefined ? {} : { argument }),
    run: (given) => Effect.fail({ given })
  })

const json = flag("Print JSON for machines.")

const commands = [
  known("serve", Schema.Struct({})),
  known(
    "keys create",
    Schema.Struct({
      name: text,
      mode: optional(choice(["test", "live"], "The mode.")),
      grant: Schema.Array(text).pipe(Schema.optionalWith({ exact: true, default: () => [] })),
      json
    })
  ),
  known("keys list", Schema.Struct({ json })),
  known("accounts show", Schema.Struct({ id: text, ownerEmail: optional(text) }), "id")
]

const refusal = (...args: ReadonlyArray<string>): string => {
  const understood = understand(commands, args)
  expect(understood._tag, args.join(" ")).toBe("Left")
  return Either.isLeft(understood) ? understood.left.message : ""
}

/** What the command is given, or why it refuses it. */
const given = (...args: ReadonlyArray<string>): unknown => {
  const understood = Either.getOrThrow(understand(commands, args))
  if (understood._tag !== "Command") throw new Error(understood._tag)
  const failure = Effect.runSync(Effect.flip(understood.command.run(understood.given)))
  return failure instanceof WrongUsage ? failure.message : failure
}

describe("a command line", () => {
  it("names a command by its first words", () => {
    for (const [line, name] of [
      [["serve"], "serve"],
      [["keys", "create", "--name", "x"], "keys create"],
      [["--json", "keys", "list"], "keys list"],
      [["accounts", "show", "an argument"], "accounts show"],
      [["--", "serve"], "serve"]
    ] as const) {
      expect(understand(commands, line)).toMatchObject({ right: { _tag: "Command", command: { name } } })
    }
    expect(understand(commands, ["serve", "--help"])).toMatchObject({
      right: { _tag: "Help", command: { name: "serve" } }
    })
  })

  it("without a command that there is, is refused with those that there are", () => {
    expect(refusal()).toContain("serve, keys, accounts")
    expect(refusal("key")).toContain("no command 'key'. Available: serve, keys, accounts")
    expect(refusal("keys")).toContain("keys create, keys list")
    expect(refusal("keys", "make")).toContain("no command 'keys make'. Available: keys create, keys list")
    expect(refusal("keys", "make", "--help")).toContain("keys create, keys list")
    expect(refusal("keys", "--json")).toContain("keys create, keys list")
    expect(refusal("create", "keys")).toContain("serve, keys, accounts")
  })

  it("that asks for help gets an overview of the commands under its words", () => {
    const overview = (...args: ReadonlyArray<string>) => {
      const understood = Either.getOrThrow(understand(commands, args))
      return understood._tag === "Overview" ? understood.of.map(({ name }) => name) : understood._tag
    }
    expect(overview("--help")).toEqual(["serve", "keys create", "keys list", "accounts show"])
    expect(overview("-h")).toHaveLength(4)
    expect(overview("keys", "--help")).toEqual(["keys create", "keys list"])
    expect(overview("--version")).toBe("Version")
  })

  it("with an option that its command has not is refused by the option's name", () => {
    expect(refusal("keys", "list", "--jsom")).toContain("--jsom")
    expect(refusal("keys", "list", "--name", "x")).toContain("Available: --json")
    expect(refusal("serve", "--port", "1")).toBe("The command 'serve' has no options; it was given --port.")
    expect(refusal("keys", "list", "-j")).toContain("no option -j")
    expect(refusal("--versio")).toContain("no option --versio. Available: --help")
  })

  it("may give an option a value that looks like one, in one word or in two", () => {
    expect(given("keys", "create", "--name", "--port")).toMatchObject({ given: { name: "--port" } })
    expect(given("keys", "create", "--name=a=b")).toMatchObject({ given: { name: "a=b" } })
    expect(given("keys", "create", "--name=two\nlines")).toMatchObject({ given: { name: "two\nlines" } })
    expect(refusal("keys", "create", "--json", "--port")).toContain("--port")
  })

  it("gives a command its values, each option once unless it is a list", () => {
    expect(given("keys", "create", "--grant", "a", "--name", "x", "--grant=b", "--grant", "a", "--json")).toEqual({
      given: { name: "x", grant: ["a", "b"], json: true }
    })
    expect(given("accounts", "show", "me", "--owner-email", "x")).toEqual({ given: { id: "me", ownerEmail: "x" } })
    expect(refusal("keys", "create", "--name", "x", "--name", "y")).toBe("--name is given twice.")
    expect(refusal("keys", "create", "--name")).toBe("--name needs a value: <text>.")
    expect(refusal("keys", "list", "--json=yes")).toBe("--json takes no value.")
    expect(refusal("accounts", "show", "me", "you")).toContain("'you'")
  })

  it("is refused with all that is missing or has another form", () => {
    expect(given("keys", "create", "--mode", "prod")).toBe("--name <text> is missing.\n--mode must be test or live.")
    expect(given("keys", "create", "--name=", "--grant", "")).toBe(
      "--name must not be empty.\n--grant must not be empty."
    )
    expect(given("accounts", "show")).toBe("<id> is missing.")
  })

  it("is refused with a level of logs or a shell that there is not", () => {
    expect(understand(commands, ["--log-level", "debug", "serve"])).toMatchObject({
      right: { logLevel: { label: "DEBUG" } }
    })
    expect(refusal("serve", "--log-level", "loud")).toContain("--log-level must be all or trace")
    expect(refusal("--completions", "csh")).toBe("--completions must be sh or bash or fish or zsh.")
  })

  it("never fails to be understood or refused, whatever it says", () => {
    const word = FastCheck.oneof(
      FastCheck.string(),
      FastCheck.constantFrom(
        "keys",
        "create",
        "list",
        "serve",
        "--json",
        "--name",
        "--help",
        "-",
        "--",
        "",
        "--=",
        "-hx"
      )
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(word), (args) => {
        const understood = understand(commands, args)
        if (Either.isLeft(understood)) expect(understood.left).toBeInstanceOf(WrongUsage)
        else if (understood.right._tag === "Command") {
          const { command, given } = understood.right
          expect(Effect.runSync(Effect.flip(command.run(given)))).toBeDefined()
        }
      })
    )
  })
})

describe("completion", () => {
  /** What bash offers for the last of these words. */
  const offered = (...words: ReadonlyArray<string>): ReadonlyArray<string> =>
    execFileSync(
      "bash",
      [
        "-c",
        `${completionScript(cli.commands, "bash")}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _connected_payments; printf '%s\\n' "\${COMPREPLY[@]}"`,
        "bash",
        "connected-payments",
        ...words
      ],
      { encoding: "utf8" }
    )
      .trim()
      .split("\n")

  it("in bash offers commands, their options, and the words that an option can be", () => {
    expect(offered("")).toEqual(expect.arrayContaining(["serve", "keys", "--version"]))
    expect(offered("k")).toEqual(["keys"])
    expect(offered("keys", "r")).toEqual(["revoke", "rotate-master"])
    expect(offered("keys", "list", "--")).toEqual([
      "--organization",
      "--environment",
      "--json",
      "--help",
      "--log-level",
      "--env-file",
      "--as"
    ])
    expect(offered("listen", "--events", "payment.paid", "--f")).toEqual(["--forward-to"])
    expect(offered("keys", "list", "--environment", "")).toEqual(["sandbox", "production"])
  })

  it.each(["fish", "zsh"] as const)("in %s offers every command and option with its meaning", (shell) => {
    const script = completionScript(cli.commands, shell)
    for (const { name, parameters } of cli.commands) {
      const words = [...name.split(" "), ...parameters.map(({ name }) => name).filter((name) => name.startsWith("--"))]
      for (const word of words) expect(script).toMatch(new RegExp(`'${word}(?:' -d '|:)[A-Za-z]`))
    }
  })
})
