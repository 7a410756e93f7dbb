import { dirname } from "node:path"
import { Effect, Option, Redacted } from "effect"
import type { ProviderCredentials, SettingsShape } from "../../platform/settings/Settings.ts"
import { isLocked } from "../../platform/storage/embedded/DirectoryLock.ts"
import { emulatorCredentials, LocalDefaultsFailed, localSecretsPath, readSecrets } from "../local/Local.ts"
import { localFilePath, readLocalFile } from "../local/LocalOrganization.ts"

/** A service that runs on the local defaults of a data directory. */
export interface LocalService {
  readonly databaseUrl: Redacted.Redacted
  /** Its provider emulator, if it started one. */
  readonly emulator: Option.Option<{ readonly url: URL; readonly credentials: ProviderCredentials }>
}

/** The time limit for an answer of the service, which is on this machine and answers at once or not at all. */
const livenessTimeoutMillis = 2000

/** Whether the process that wrote the file is alive: if it was killed, another service may answer on its port. */
const isOfLiveProcess = (file: string) =>
  Effect.mapError(
    isLocked(dirname(file)),
    (cause) => new LocalDefaultsFailed({ message: `Can't tell whether ${file} belongs to a running service`, cause })
  )

const isLive = (baseUrl: string): Effect.Effect<boolean> =>
  Effect.tryPromise(async (signal) => {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(livenessTimeoutMillis)])
    const response = await fetch(`${baseUrl}/health/live`, { signal: deadline })
    await response.body?.cancel()
    return response.ok
  }).pipe(Effect.orElseSucceed(() => false))

export const findLocalService = (
  settings: SettingsShape
): Effect.Effect<Option.Option<LocalService>, LocalDefaultsFailed> =>
  Effect.gen(function* () {
    const file = localFilePath(settings)
    const local = settings.mode === "local" ? yield* readLocalFile(file) : Option.none()
    if (Option.isNone(local) || !(yield* isOfLiveProcess(file)) || !(yield* isLive(local.value.baseUrl))) {
      return Option.none()
    }
    const { databaseUrl, emulatorUrl } = local.value
    return Option.some({
      databaseUrl: Redacted.make(databaseUrl),
      emulator: Option.zipWith(
        Option.fromNullable(emulatorUrl),
        yield* readSecrets(localSecretsPath(settings)),
        (url, secrets) => ({ url: new URL(url), credentials: emulatorCredentials(secrets) })
      )
    })
  })
