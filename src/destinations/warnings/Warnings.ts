import type { SqlClient } from "@effect/sql"
import { Effect, type Layer, Option } from "effect"
import { entersEverything, Members } from "../../identity/members/Members.ts"
import { housekeepingLayer } from "../../platform/kit/Housekeeping.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { Mailer, sendToSeveral } from "../../platform/kit/Mailer.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { warningMail } from "./WarningMail.ts"
import { type FailingEndpoint, makeWarningsRepo } from "./WarningsRepo.ts"

const interval = "1 minute"

/** A round ends after this many consecutive warnings that the mail server did not accept: it may accept none at all. */
const mostFailuresInARow = 5

/** How long to wait after the mail server permanently refused a warning: an operator has to fix something first. */
const refusedFor = "1 hour"

export interface WarningsOptions {
  readonly publicUrl: string
}

const recipients = (members: Members["Type"], organizationId: OrganizationId) =>
  Effect.map(members.list(organizationId), (all) =>
    all.filter(({ role }) => entersEverything(role)).map(({ email }) => email)
  )

const make = Effect.fnUntraced(function* (options: WarningsOptions) {
  const mailer = yield* Mailer
  const members = yield* Members
  const repo = yield* makeWarningsRepo

  const warn = Effect.fnUntraced(function* (endpoint: FailingEndpoint) {
    const claim = yield* repo.claim(endpoint)
    if (Option.isNone(claim)) {
      return false
    }
    const failures = yield* repo.failures(endpoint)
    if (Option.isNone(failures)) {
      yield* repo.rest(endpoint, claim.value, { after: "0" })
      return false
    }
    const addresses = yield* recipients(members, endpoint.organizationId)
    // From here on the warning counts as sent, unless the mail server is known not to have accepted it
    const begun = yield* repo.rest(endpoint, claim.value, { after: "24 hours" })
    if (Option.isNone(begun)) {
      return false
    }
    const mails = addresses.map((to) => warningMail(failures.value, { to, publicUrl: options.publicUrl }))
    return yield* sendToSeveral(mailer, mails).pipe(
      Effect.tap((sent) => repo.rest(endpoint, begun.value, { sent })),
      Effect.as(false),
      Effect.catchTag("MailNotSent", (error) =>
        Effect.logWarning(`A warning of failed deliveries could not be sent: ${error.message}`).pipe(
          Effect.zipRight(repo.rest(endpoint, begun.value, { after: error.permanent ? refusedFor : "0" })),
          Effect.as(!error.permanent)
        )
      ),
      Effect.annotateLogs({ endpointId: endpoint.endpointId, organizationId: endpoint.organizationId })
    )
  })

  /**
   * Warns about every endpoint with three or more definitive failures in the last 24 hours, not counting synthetic
   * tests, and no warning in the last day. Any number of processes may do it: one of them claims each warning for a
   * while. A warning that the mail server temporarily refuses is retried in the next round, after all others; five of
   * those in a row end the round.
   *
   * At most one warning per day and endpoint, whatever happens (contract 9.7): it counts as sent from just before it
   * is handed over. So if a process dies before that, nothing is lost; if it dies during the hand-over, or the mail
   * server does not confirm in time, the warning is not sent again that day, and may be lost.
   */
  const scan = Effect.fn("Warnings.scan")(function* () {
    let failuresInARow = 0
    for (const endpoint of yield* repo.due) {
      failuresInARow = (yield* warn(endpoint)) ? failuresInARow + 1 : 0
      if (failuresInARow >= mostFailuresInARow) {
        return
      }
    }
  }, orUnavailable)

  return { scan: scan() }
})

/** Warnings to owners and admins that deliveries to an endpoint fail (contract 9.7). */
export class Warnings extends serviceWith<Warnings>()("connected-payments/destinations/Warnings", make) {}

export const warningsLayer: Layer.Layer<never, never, Warnings | SqlClient.SqlClient> = housekeepingLayer(
  "warnings",
  Effect.map(Warnings, ({ scan }) => ({ "failing endpoints": scan })),
  interval
)
