import { NodeRuntime } from "@effect/platform-node"
import { Config, Console, Effect, Option, Redacted } from "effect"
import { makeEmulator } from "./Emulator.ts"

/**
 * The emulator's settings: `EMULATOR_HOST` (default 127.0.0.1), `EMULATOR_PORT` (default 0: any free port),
 * `EMULATOR_JOURNAL` (absent: state in memory only), `EMULATOR_SECRET_KEY`, `EMULATOR_WEBHOOK_SECRET`,
 * `EMULATOR_THIN_WEBHOOK_SECRET` (default: the same).
 */
const settings = Config.all({
  host: Config.withDefault(Config.nonEmptyString("EMULATOR_HOST"), "127.0.0.1"),
  port: Config.withDefault(
    Config.validate(Config.integer("EMULATOR_PORT"), {
      message: "a port is a number from 0 to 65535",
      validation: (port) => port >= 0 && port <= 65_535
    }),
    0
  ),
  journalFile: Config.option(Config.nonEmptyString("EMULATOR_JOURNAL")),
  secretKey: Config.redacted(Config.nonEmptyString("EMULATOR_SECRET_KEY")),
  webhookSecret: Config.redacted(Config.nonEmptyString("EMULATOR_WEBHOOK_SECRET")),
  thinWebhookSecret: Config.option(Config.redacted(Config.nonEmptyString("EMULATOR_THIN_WEBHOOK_SECRET")))
})

/** Runs until SIGTERM or SIGINT; the first line of its output is its URL. */
const main = Effect.gen(function* () {
  const { host, journalFile, port, secretKey, thinWebhookSecret, webhookSecret } = yield* settings
  const emulator = yield* makeEmulator({
    host,
    port,
    ...(Option.isSome(journalFile) ? { journalFile: journalFile.value } : {}),
    secretKey: Redacted.value(secretKey),
    webhookSecret: Redacted.value(webhookSecret),
    ...(Option.isSome(thinWebhookSecret) ? { thinWebhookSecret: Redacted.value(thinWebhookSecret.value) } : {})
  })
  yield* Console.log(emulator.url)
  return yield* Effect.never
})

NodeRuntime.runMain(Effect.scoped(main))
