import { Console, Effect, Option, Schema } from "effect"
import {
  type LeftUnderKey,
  type RotationProgress,
  type RotationReport,
  rotateMasterKeys
} from "../../../destinations/endpoints/MasterKeys.ts"
import { command } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import { database, Installation } from "../Installation.ts"

/** `keys rotate-master`: moves everything that is encrypted at rest to the first of `MASTER_KEYS`. */

const progressEveryMillis = 1000

const makeProgress = () => {
  let toldAt = Date.now()
  return ({ kind, reencrypted, total }: RotationProgress): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (reencrypted < total && Date.now() - toldAt < progressEveryMillis) {
        return Effect.void
      }
      toldAt = Date.now()
      return Console.error(`${kind}: ${reencrypted} of ${total} re-encrypted`)
    })
}

const masterKeys = Effect.flatMap(Installation, ({ settings }) =>
  Option.match(settings.masterKeys, {
    onNone: () =>
      new CommandFailed({ message: "MASTER_KEYS is not set: name the new key first and the older ones after it." }),
    onSome: Effect.succeed
  })
)

const leftText = ({ count, kind, known, masterKeyId }: LeftUnderKey): string =>
  known
    ? `${kind}: ${count} still under "${masterKeyId}".`
    : `${kind}: ${count} under "${masterKeyId}", which is not among MASTER_KEYS. Add it and run this again.`

const reportText = ({ current, left, reencrypted, unreadable, unused }: RotationReport): string =>
  [
    `Re-encrypted under "${current}": ${reencrypted}`,
    ...left.map(leftText),
    ...unreadable.map(
      ({ environment, kind, masterKeyId, organizationId }) =>
        `One of the ${kind}${organizationId === null ? "" : ` of organization ${organizationId} in ${environment}`} does not decrypt under "${masterKeyId}".`
    ),
    ...(unused.length === 0
      ? []
      : [
          `Nothing in this database is under ${unused.map((id) => `"${id}"`).join(", ")} any longer. Once every process runs with "${current}" first, remove it from MASTER_KEYS; keep it as long as you keep older backups.`
        ])
  ].join("\n")

/** The command; it fails if data is left under another key. */
export const rotateMaster = command({
  name: "keys rotate-master",
  summary: "Re-encrypt all stored secrets under the first of MASTER_KEYS, while the service runs.",
  example: "--json",
  input: Schema.Struct({}),
  services: database,
  run: Effect.fnUntraced(function* () {
    const report = yield* rotateMasterKeys({ masterKeys: yield* masterKeys, onProgress: makeProgress() })
    return {
      json: report,
      text: reportText(report),
      ...(report.left.length > 0 ? { failure: notAll } : {})
    }
  })
})

const notAll = new CommandFailed({
  message:
    "Not everything is encrypted under the current master key. Make sure that every process has it first in MASTER_KEYS, and run this again."
})
