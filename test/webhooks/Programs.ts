import { spawn, spawnSync } from "node:child_process"
import { expect } from "@effect/vitest"
import { outputOf } from "../harness/Output.ts"

export type Command = readonly [string, ...ReadonlyArray<string>]

/** A program in another language that reads a case a line, as JSON, and writes a line for each. */
export interface Program {
  readonly name: string
  /** Succeeds where the machine has what it needs. */
  readonly probe: Command
  readonly build?: Command
  readonly run: Command
}

/** Whether the machine can run it, and what is said of its test if not. */
export const installed = ({ name, probe: [command, ...args] }: Pick<Program, "name" | "probe">, env = process.env) => {
  const here = spawnSync(command, args, { env }).status === 0
  return { here, note: here ? "" : ` (skipped: this machine lacks what ${name} needs)` }
}

export const answersOf = async (
  { build, run }: Pick<Program, "build" | "run">,
  cases: ReadonlyArray<object>,
  env: NodeJS.ProcessEnv = process.env
): Promise<ReadonlyArray<string>> => {
  if (build !== undefined) {
    const built = await execute(build, "", env)
    expect(built.status, built.stderr).toBe(0)
  }
  const ran = await execute(run, cases.map((one) => `${JSON.stringify(one)}\n`).join(""), env)
  expect([ran.stderr, ran.status]).toEqual(["", 0])
  return ran.stdout.trim().split("\n")
}

/** Runs a program to its end; a first build takes a while, and the test's worker must stay responsive. */
const execute = ([command, ...args]: Command, input: string, env: NodeJS.ProcessEnv) =>
  new Promise<{ readonly status: number | null; readonly stdout: string; readonly stderr: string }>(
    (resolve, reject) => {
      const child = spawn(command, args, { env, timeout: 240_000 })
      const output = outputOf(child)
      child.on("error", reject).on("close", (status) => resolve({ status, ...output }))
      child.stdin.on("error", () => {}).end(input)
    }
  )
