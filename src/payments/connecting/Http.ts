import { HttpApp, HttpServerResponse } from "@effect/platform"
import { Effect, Redacted } from "effect"
import { CurrentSession } from "../../identity/Authentication.ts"
import { requestedEnvironment } from "../../identity/AuthenticationLive.ts"
import { memberInWorkspace } from "../../identity/members/CurrentMember.ts"
import { refusal } from "../../platform/bounds/Refusals.ts"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { serving } from "../../platform/kit/Handlers.ts"
import { AccountConnection, type LinkState } from "./AccountConnection.ts"
import { AccountConnectionApi, type AccountConnectionRecord } from "./Api.ts"
import type { OnboardingUrl } from "./Port.ts"

/** The signed-in person. Refuses another environment than the selected one, which another tab may have changed. */
const memberIn = (environment: Environment) =>
  Effect.filterOrFail(
    memberInWorkspace,
    (member) => member.environment === environment,
    () => new ValidationFailed(refusal(new Map([["environment", "must be the selected workspace's environment"]])))
  )

const statusOf = ({ account, current, status }: LinkState): (typeof AccountConnectionRecord.Type)["status"] => {
  if (account === null) return "not_connected"
  if (account.status === "disconnected") return "disconnected"
  // Without a status, but current: the provider has none
  return (status === null ? current : status.details_submitted) ? "connected" : "onboarding"
}

const dateOf = (seconds: number | null | undefined): Date | null =>
  seconds === null || seconds === undefined ? null : new Date(seconds * 1000)

const shown = (environment: Environment, connection: LinkState): typeof AccountConnectionRecord.Type => {
  const { account, canUseExisting, current, dependents, endsAccess, status } = connection
  const requirements = status?.requirements
  return {
    environment,
    status: statusOf(connection),
    accountId: account?.accountId ?? null,
    chargesEnabled: status?.charges_enabled ?? false,
    payoutsEnabled: status?.payouts_enabled ?? false,
    detailsSubmitted: status?.details_submitted ?? false,
    requirements: {
      currentlyDueCount: requirements?.currently_due_count ?? 0,
      pastDueCount: requirements?.past_due_count ?? 0,
      pendingVerificationCount: requirements?.pending_verification_count ?? 0,
      disabledReason: requirements?.disabled_reason ?? null,
      currentDeadline: dateOf(requirements?.current_deadline)
    },
    current,
    linkedBy: account?.linkedBy ?? null,
    linkedAt: account?.linkedAt ?? null,
    disconnectedAt: account?.disconnectedAt ?? null,
    canUseExisting,
    disconnecting: {
      endsProviderAccess: endsAccess,
      endpointCount: dependents?.endpointCount ?? 0,
      checkoutPageCount: dependents?.checkoutPageCount ?? 0,
      pendingDeliveryCount: dependents?.pendingDeliveryCount ?? 0
    }
  }
}

/** Forbids caches to store the answer. */
const unstored = HttpApp.appendPreResponseHandler((_request, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "cache-control", "no-store"))
)

/** Unwraps the redacted URL, only here, in the answer to the person who requested it. */
const revealed = ({ expiresAt, url }: OnboardingUrl) => Effect.as(unstored, { url: Redacted.value(url), expiresAt })

export const accountConnectionHttp = serving(AccountConnectionApi, AccountConnection, (connection) => ({
  get: () =>
    Effect.flatMap(memberInWorkspace, (member) =>
      Effect.map(connection.show(member), (found) => shown(member.environment, found))
    ),
  startOnboarding: ({ payload }) =>
    memberIn(payload.environment).pipe(
      Effect.flatMap((member) => connection.startOnboarding(member, member.author)),
      Effect.flatMap(revealed)
    ),
  startOauth: Effect.fnUntraced(function* ({ payload }) {
    const member = yield* memberIn(payload.environment)
    const { id } = yield* CurrentSession
    return yield* revealed(yield* connection.startAuthorization(member, member.author, id))
  }),
  disconnect: Effect.fnUntraced(function* ({ urlParams: { accountId, environment } }) {
    const member = yield* environment === undefined ? memberInWorkspace : memberIn(environment)
    const isMeant = (environment ?? (yield* requestedEnvironment)) !== undefined
    yield* connection.disconnect(member, accountId, member.author, { isMeant })
  })
}))
