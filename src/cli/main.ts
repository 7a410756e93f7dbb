#!/usr/bin/env node
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit } from "effect"
import { runCli } from "./Cli.ts"
import { exitCodes } from "./Failure.ts"

const main = Effect.map(runCli(process.argv.slice(2)), (exitCode) => {
  // The service sets the code of its own failures
  process.exitCode ||= exitCode
})

NodeRuntime.runMain(main, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, onExit) => {
    const interrupted = Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)
    onExit(Number(process.exitCode ?? (interrupted ? exitCodes.interrupted : exitCodes.done)))
  }
})
