import { HelpDoc } from "@effect/cli"
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { normalize, understand } from "../../src/cli/CommandLine.ts"
import { WrongUsage } from "../../src/cli/Failure.ts"
import type { KnownCommand } from "../../src/cli/Synopsis.ts"

const known = (command: string, ...options: ReadonlyArray<string>): KnownCommand => ({
  command,
  summary: "",
  example: "",
  options: new Set(options),
  usage: command,
  details: HelpDoc.empty
})

const commands = [
  known("serve"),
  known("keys create", "--name", "--json"),
  known("keys list", "--json"),
  known("accounts show")
]

const refusal = (...args: ReadonlyArray<string>): string => {
  const understood = understand(commands, args)
  expect(understood._tag, args.join(" ")).toBe("Wrong")
  return understood._tag === "Wrong" ? understood.error.message : ""
}

describe("a command line", () => {
  it("names a command by its first words", () => {
    for (const [line, command] of [
      [["serve"], "serve"],
      [["serve", "--help"], "serve"],
      [["keys", "create", "--name", "x"], "keys create"],
      [["keys", "list", "an argument", "--json"], "keys list"]
    ] as const) {
      expect(understand(commands, line)).toMatchObject({ _tag: "Command", command: { command } })
    }
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
      const understood = understand(commands, args)
      return understood._tag === "Overview" ? understood.of.map(({ command }) => command) : understood._tag
    }
    expect(overview("--help")).toEqual(["serve", "keys create", "keys list", "accounts show"])
    expect(overview("-h")).toHaveLength(4)
    expect(overview("keys", "--help")).toEqual(["keys create", "keys list"])
    expect(overview("--version")).toBe("Program")
  })

  it("with an option that its command has not is refused by the option's name", () => {
    expect(refusal("keys", "list", "--jsom")).toContain("--jsom")
    expect(refusal("keys", "list", "--name", "x")).toContain("Available: --json")
    expect(refusal("serve", "--port", "1")).toBe("The command 'serve' has no options; it was given --port.")
  })

  it("may give an option a value that looks like one", () => {
    expect(understand(commands, ["keys", "create", "--name", "--port"])._tag).toBe("Command")
    expect(refusal("keys", "create", "--json", "--port")).toContain("--port")
  })

  it("never fails to be understood or refused, whatever it says", () => {
    const word = FastCheck.oneof(
      FastCheck.string(),
      FastCheck.constantFrom("keys", "create", "list", "serve", "--json", "--name", "--help", "-", "--", "")
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(word), (args) => {
        const understood = understand(commands, normalize(args))
        expect(understood._tag === "Wrong" ? understood.error instanceof WrongUsage : true).toBe(true)
      })
    )
  })
})

describe("an option with its value in one word", () => {
  it("is split at the first equals sign, and nothing else is changed", () => {
    expect(normalize(["keys", "--name=a=b", "--name=", "x=y", "-n=1", "--json", "--Name=x"])).toEqual([
      "keys",
      "--name",
      "a=b",
      "--name",
      "",
      "x=y",
      "-n=1",
      "--json",
      "--Name=x"
    ])
    expect(normalize(["--name=two\nlines"])).toEqual(["--name", "two\nlines"])
  })
})
