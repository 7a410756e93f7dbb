#!/usr/bin/env node
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit } from "effect"
import { runCli } from "./Cli.ts"
import { exitCodes } from "./Failure.ts"

const main = Effect.map(runCli(process.argv.slice(2)), (exitCode) => {
  // The service sets the code of its own failures
  process.exitCode ||= exitCode
})

/**
 * Calls back when the reader of a stream has consumed everything, or is gone. A pipe holds 64 KiB: data that a slow
 * reader has not consumed would be lost with the process.
 */
const whenTaken = (stream: NodeJS.WriteStream, done: () => void): void => {
  // A reader that is gone fails the write, and must not fail the process
  stream.on("error", () => {})
  stream.write("", () => done())
}

NodeRuntime.runMain(main, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, onExit) => {
    const interrupted = Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)
    const code = Number(process.exitCode ?? (interrupted ? exitCodes.interrupted : exitCodes.done))
    if (interrupted) onExit(code)
    else whenTaken(process.stdout, () => whenTaken(process.stderr, () => onExit(code)))
  }
})
