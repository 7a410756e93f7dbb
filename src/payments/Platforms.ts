import type { SqlError } from "@effect/sql"
import { Data, Effect, Option } from "effect"
import { ProviderPermissionDenied } from "../platform/errors/Errors.ts"
import { type Environment, environments } from "../platform/kit/Environment.ts"
import { secretKeyName } from "../platform/settings/ProviderCredentials.ts"
import { orUnavailable } from "../platform/storage/Database.ts"
import { Metrics } from "../platform/telemetry/Metrics.ts"
import { makeAccountsRepo } from "./AccountsRepo.ts"
import { supports } from "./OwnProvider.ts"
import { Provider } from "./Provider.ts"
import type { ConnectedAccount } from "./ProviderCall.ts"
import type { ProviderFailure } from "./ProviderErrors.ts"

/**
 * The platform that accounts are linked under. To a key of another platform, the provider answers as if every account's
 * owner had revoked access. Without a check of the key itself, one process with a wrong key would disconnect every
 * account.
 */

/** This process's key belongs to another platform than the accounts. The message is for operators. */
export class AnotherPlatform extends Data.TaggedError("AnotherPlatform")<{ readonly message: string }> {}

/** How long startup waits for the provider to identify the key's platform. */
const startTimeout = "5 seconds"

/** A key that can read a connected account belongs to the right platform. */
type KeyOwner = "ours" | "another" | "unknown"

const makeParts = Effect.all({ repo: makeAccountsRepo, provider: Provider, metrics: Metrics })

type Parts = Effect.Effect.Success<typeof makeParts>

const makeOfKey =
  ({ provider }: Parts) =>
  (environment: Environment): Effect.Effect<Option.Option<string>, ProviderFailure> =>
    provider.retrievePlatformId(environment).pipe(
      Effect.asSome,
      Effect.catchTags({
        ProviderPermissionDenied: () => Effect.succeedNone,
        ProviderOperationUnsupported: () => Effect.succeedNone,
        AccountAccessRevoked: () => Effect.succeedNone
      })
    )

/** Logs and counts a refused access that is, or may be, the key's fault and not the account's. */
const makeRefused =
  ({ metrics }: Parts) =>
  (environment: Environment, owner: "another" | "unknown") =>
    Effect.zipRight(
      Effect.sync(() => metrics?.count("connected_payments.provider.access.refused.count", [environment, owner])),
      Effect.logError(
        owner === "another"
          ? `${secretKeyName(environment)} is a key of another platform than the one that accounts were linked under: the provider refuses access to all of them. None was disconnected`
          : `The provider refuses access to an account, and whether ${secretKeyName(environment)} is of the account's platform is unknown. The account was not disconnected`
      )
    ).pipe(Effect.annotateLogs({ environment }))

const makeKeyOwner = (
  { provider, repo }: Parts,
  refused: ReturnType<typeof makeRefused>,
  ofKey: ReturnType<typeof makeOfKey>
) => {
  /**
   * Records the platform of a new link, in the link's transaction. Replaces another platform if no account is connected
   * any more; fails if accounts are connected under another one.
   */
  const record = Effect.fnUntraced(function* (environment: Environment, platformId: string) {
    if (Option.contains(yield* repo.platform(environment), platformId)) {
      return
    }
    if (!(yield* repo.recordPlatform(environment, platformId))) {
      yield* refused(environment, "another")
      return yield* new ProviderPermissionDenied({ cause: "The key is of another platform than the accounts" })
    }
  })

  /** If so, it belongs to the account's platform, which is recorded if none was. */
  const canRead = (account: ConnectedAccount, platformId: Option.Option<string>) =>
    provider.retrieveAccount(account).pipe(
      Effect.zipRight(Effect.transposeMapOption(platformId, (id) => record(account.environment, id))),
      Effect.as(true),
      Effect.catchTag("AccountAccessRevoked", () => Effect.succeed(false))
    )

  const ownerOfKey = Effect.fnUntraced(function* ({ accountId, environment }: ConnectedAccount) {
    const [known, platformId] = [yield* repo.platform(environment), yield* ofKey(environment)]
    if (Option.isSome(known) && Option.isSome(platformId)) {
      return known.value === platformId.value ? "ours" : "another"
    }
    const other = yield* repo.anyConnected(environment, accountId)
    return Option.isSome(other) && (yield* canRead(other.value, platformId)) ? "ours" : "unknown"
  })

  return { record, canRead, ownerOfKey }
}

/**
 * Fails with `provider_permission_denied` unless the key certainly belongs to the accounts' platform; otherwise a
 * refused access proves nothing.
 *
 * @param ifUnknown the result if the key's platform can't be determined
 */
const makeRequireOwnKey = ({ ownerOfKey }: ReturnType<typeof makeKeyOwner>, refused: ReturnType<typeof makeRefused>) =>
  Effect.fnUntraced(function* (account: ConnectedAccount, cause: unknown, ifUnknown: "fails" | "passes" = "fails") {
    const owner: KeyOwner = yield* ownerOfKey(account)
    if (owner === "ours" || (owner === "unknown" && ifUnknown === "passes")) {
      return
    }
    yield* refused(account.environment, owner)
    return yield* new ProviderPermissionDenied({ cause })
  }, orUnavailable)

const makeCheckKeys = (
  { repo }: Parts,
  ofKey: ReturnType<typeof makeOfKey>,
  { canRead }: ReturnType<typeof makeKeyOwner>
) => {
  const checkKey = Effect.fnUntraced(function* (environment: Environment) {
    const connected = yield* repo.anyConnected(environment, null)
    if (Option.isNone(connected)) {
      return
    }
    const [known, platformId] = [yield* repo.platform(environment), yield* ofKey(environment)]
    if (Option.isNone(platformId)) {
      return yield* Effect.logWarning(
        `${secretKeyName(environment)} may not read its platform's own account, so it can't be compared with the accounts' platform`
      )
    }
    if (Option.isSome(known) && known.value !== platformId.value) {
      return yield* new AnotherPlatform({
        message:
          `${secretKeyName(environment)}: the key is of the platform ${platformId.value}, but accounts are linked under ${known.value}. ` +
          `With this key none of them can be reached. Set a key of ${known.value}. To change the platform, unlink all accounts ` +
          `first (connected-payments accounts unlink, with a process that has the former key), then link those of the new one.`
      })
    }
    if (Option.isNone(known) && !(yield* canRead(connected.value, platformId))) {
      yield* Effect.logWarning(
        `${secretKeyName(environment)} has no access to ${connected.value.accountId}: it may be of another platform than the accounts`
      )
    }
  })

  /** Fails if a key belongs to another platform. An unreachable provider does not prevent startup. */
  const checkKeys: Effect.Effect<void, AnotherPlatform | SqlError.SqlError> = Effect.forEach(
    environments,
    (environment) =>
      checkKey(environment).pipe(
        Effect.timeout(startTimeout),
        Effect.catchIf(
          (error) => error._tag !== "AnotherPlatform" && error._tag !== "SqlError",
          (error) =>
            Effect.logWarning(
              `The provider could not be asked which platform ${secretKeyName(environment)} is of`,
              error
            )
        )
      ),
    { discard: true, concurrency: "unbounded" }
  )

  return checkKeys
}

/** The record of the platform in each environment, and the comparison of this process's key with it. */
export const makePlatforms = Effect.gen(function* () {
  const parts = yield* makeParts
  const ofKey = makeOfKey(parts)
  const refused = makeRefused(parts)
  const keyOwner = makeKeyOwner(parts, refused, ofKey)
  const requireOwnKey = makeRequireOwnKey(keyOwner, refused)
  const checkKeys = makeCheckKeys(parts, ofKey, keyOwner)

  // A provider without platforms has no key that could be of another one
  return supports(parts.provider, "retrievePlatformId")
    ? { ofKey, record: keyOwner.record, requireOwnKey, checkKeys }
    : { ofKey, record: keyOwner.record, requireOwnKey: () => Effect.void, checkKeys: Effect.void }
})
