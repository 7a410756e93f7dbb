import type { Readable } from "node:stream"

/** Keeps what a program writes: what has come so far, by its streams. */
export const outputOf = ({ stderr, stdout }: Readonly<Record<"stdout" | "stderr", Readable>>) => {
  const output = { stdout: "", stderr: "" }
  stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text
  })
  stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text
  })
  return output
}
