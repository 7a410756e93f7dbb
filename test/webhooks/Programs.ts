import { spawn } from "node:child_process"

export type Command = readonly [string, ...ReadonlyArray<string>]

/** Runs a program to its end; a first build takes a while, and the test's worker must stay responsive. */
export const execute = ([command, ...args]: Command, input = "", env: NodeJS.ProcessEnv = process.env) =>
  new Promise<{ readonly status: number | null; readonly stdout: string; readonly stderr: string }>(
    (resolve, reject) => {
      const child = spawn(command, args, { env, timeout: 240_000 })
      const output = { stdout: "", stderr: "" }
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output.stdout += text
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        output.stderr += text
      })
      child.on("error", reject).on("close", (status) => resolve({ status, ...output }))
      child.stdin.on("error", () => {}).end(input)
    }
  )
