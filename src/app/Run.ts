import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { currentRedactedNames } from "@effect/platform/Headers"
import { Cause, Data, Effect, Layer, Option } from "effect"
import { checkMasterKeys } from "../destinations/endpoints/MasterKeys.ts"
import { errorCode } from "../platform/errors/ErrorCode.ts"
import { isKeptByBrowsers } from "../platform/kit/UrlServer.ts"
import { misspeltSettings, readSettings, type SettingsShape } from "../platform/settings/Settings.ts"
import { loggingLayer } from "../platform/telemetry/Logging.ts"
import { handleProcessErrors } from "../platform/telemetry/ProcessErrors.ts"
import { telemetryLayer } from "../platform/telemetry/Telemetry.ts"
import { type CompletedSettings, completeSettings, localSecretsPath } from "./local/Local.ts"
import { ensureLocalOrganization, welcome, writeLocalFile } from "./local/LocalOrganization.ts"
import { showStep } from "./local/Progress.ts"
import { rolesLayer, servicesLayer, storageLayer } from "./Service.ts"

/** The HTTP server could not listen on its address. The message is for the person who started the service. */
class CannotListen extends Data.TaggedError("CannotListen")<{ readonly message: string; readonly cause: unknown }> {}

const listenReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use. Stop what uses it, or set PORT to another one (0 picks a free one)",
  EACCES: "this account may not use the port. Set PORT to another one",
  EADDRNOTAVAIL: "the address is not this machine's. Set HOST to one that is"
}

const cannotListen = (settings: { readonly host: string; readonly port: number }, cause: unknown): CannotListen => {
  const code = errorCode(cause) ?? ""
  const reason = listenReasons[code] ?? (cause instanceof Error ? cause.message : String(cause))
  return new CannotListen({
    message: `The service can't listen on ${settings.host}:${settings.port}: ${reason}.`,
    cause
  })
}

/** The line that a production process logs once it has started: where it listens, since `PUBLIC_URL` is the proxy's. */
const started = ({ baseUrl, service }: CompletedSettings): string => {
  const { host, port, roles } = service.settings
  return roles.api
    ? `Serving ${baseUrl} on ${host.includes(":") ? `[${host}]` : host}:${port}`
    : "Ready to deliver events"
}

/** Warns that nobody can stay signed in, if browsers would not keep the session's cookie. */
const warnOfPlainHttp = ({ baseUrl, service }: CompletedSettings) =>
  service.settings.roles.api && !isKeptByBrowsers(baseUrl)
    ? Effect.logWarning(
        `Nobody can sign in with a browser at ${baseUrl}: browsers keep the session's cookie over HTTPS only, except at localhost`
      )
    : Effect.void

/**
 * Frees the memory that the start has used: a third of the heap, which V8 would otherwise keep until it is full, and in a
 * process with little to do for ever. After such a collection V8 gives memory back whenever there is little to do, but lets
 * the heap grow only by a small part of itself, and so collects all of it three times as often as without. Hence the growth
 * is set: the heap may double between two collections. V8 offers a program no other way.
 */
const freeWhatTheStartLeft = Effect.sync(() => {
  setFlagsFromString("--heap-growing-percent=100")
  setFlagsFromString("--expose-gc")
  const gc: NodeJS.GCFunction = runInNewContext("gc")
  gc({ type: "major", execution: "sync" })
})

const untilStopped = Effect.onInterrupt(Effect.never, () => Effect.logInfo("Shutdown: begun"))

/** An installation: starts local defaults and services, then serves until it is stopped. */
const installation = Effect.fnUntraced(function* (settings: SettingsShape) {
  const completed = yield* completeSettings(settings)
  const step = (what: string) => (settings.mode === "local" ? Effect.sync(() => showStep(what)) : Effect.void)
  yield* step("Preparing the database")
  const storage = yield* Layer.build(storageLayer(completed.service))
  yield* checkMasterKeys({
    masterKeys: completed.service.masterKeys,
    ...(Option.isNone(settings.masterKeys) ? { secretsFile: localSecretsPath(settings) } : {})
  }).pipe(Effect.provide(storage))
  const services = yield* Layer.build(servicesLayer(completed.service)).pipe(Effect.provide(storage))
  yield* Effect.gen(function* () {
    const local = settings.mode === "local" ? yield* ensureLocalOrganization(settings, completed) : undefined
    yield* step("Starting the service")
    yield* Layer.build(rolesLayer(completed.service)).pipe(
      Effect.catchTag("ServeError", ({ cause }) => cannotListen(completed.service.settings, cause))
    )
    yield* Effect.transposeOption(
      Option.map(completed.emulator, ({ setThinWebhookUrl, setWebhookUrl }) =>
        Effect.zipRight(
          setWebhookUrl(`${completed.baseUrl}/webhooks/provider`),
          setThinWebhookUrl(`${completed.baseUrl}/webhooks/provider/thin`)
        )
      )
    )
    yield* freeWhatTheStartLeft
    yield* warnOfPlainHttp(completed)
    if (local === undefined) {
      yield* Effect.logInfo(started(completed))
    } else {
      yield* writeLocalFile(local.file, local.content)
      yield* Effect.sync(() => process.stdout.write(welcome(local.content, settings)))
    }
    yield* untilStopped
  }).pipe(Effect.provide(services), Effect.provide(storage))
})

const service = handleProcessErrors.pipe(
  Effect.zipRight(Effect.forEach(misspeltSettings(Object.keys(process.env)), (said) => Effect.logWarning(said))),
  Effect.zipRight(readSettings),
  Effect.flatMap(installation),
  Effect.scoped,
  Effect.onInterrupt(() => Effect.logInfo("Shutdown: done"))
)

/** Headers with credentials or signatures that spans show as redacted, in addition to the platform's. */
const secretHeaders = ["stripe-signature", "service-signature", "idempotency-key"]

/**
 * Ignores further signals: the shutdown is bounded, and a second signal, which would kill the process by default, must
 * not interrupt it. Ctrl-C on `npm start` sends two: the terminal's and npm's own.
 */
const outliveFurtherSignals = Effect.sync(() => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {})
  }
  // A closed terminal or a lost connection causes the same shutdown, so that the embedded PostgreSQL is stopped, too
  process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))
})

/** Runs the service; errors that the operator can act on are printed in plain words. */
export const runService = Effect.zipRight(outliveFurtherSignals, service).pipe(
  Effect.locallyWith(currentRedactedNames, (names) => [...names, ...secretHeaders]),
  Effect.provide(telemetryLayer),
  Effect.provide(loggingLayer),
  Effect.catchAllCause((cause) => {
    if (Cause.isInterruptedOnly(cause)) return Effect.failCause(cause)
    const failure = Cause.failureOption(cause)
    const text = Option.match(failure, {
      onSome: ({ message }) => `connected-payments can't start.\n${message}\n`,
      // A defect: the log may never have begun, or has ended by now
      onNone: () => `connected-payments has failed.\n${Cause.pretty(cause)}\n`
    })
    return Effect.sync(() => {
      process.stderr.write(text)
      process.exitCode = 1
    })
  })
)
