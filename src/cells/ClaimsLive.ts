import { SqlError } from "@effect/sql"
import { Cause, Effect, Either, FiberSet, Layer, Option, Schedule } from "effect"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { environments } from "../events/Environment.ts"
import { isUnavailable } from "../storage/Database.ts"
import { Claims, type IsHeld, type UnderClaim } from "./Claims.ts"
import { type Claim, Directory, type TakenElsewhere } from "./Directory.ts"

/** How long a write whose outcome is unknown may take to end in the database: longer than any statement. */
const unknownFor = "30 seconds"

/** How often a claim is looked after before it is left to `cells reconcile`: for half an hour. */
const tries = 60

/** How long ending a claim may hold up the request that ended what was claimed. */
const endPatience = "5 seconds"

/** Whether a write that failed like this certainly changed nothing. */
const certainlyFailed = (cause: Cause.Cause<unknown>): boolean =>
  Either.match(Cause.failureOrCause(cause), {
    onLeft: (error) =>
      error instanceof SqlError.SqlError ? !isUnavailable(error) : !(error instanceof ServiceUnavailable),
    // Interrupted, or a defect: it may have been committed
    onRight: () => false
  })

const make = (cell: string) =>
  Effect.gen(function* () {
    const directory = yield* Directory
    const claiming = directory.claimingFor(cell)
    // Ends with the service; what is left then is found by reconciling
    const later = yield* FiberSet.makeRuntime<never>()

    const left = (what: string) => (error: unknown) =>
      Effect.logWarning(
        `The directory keeps ${what}, which this cell does not have; cells reconcile releases it`,
        error
      )

    const releaseNow = (claim: Claim) =>
      claiming.release(claim).pipe(Effect.catchAll(() => Effect.sync(() => later(releaseLater(claim)))))

    const releaseLater = (claim: Claim, isHeld: IsHeld = Effect.succeed(false)): Effect.Effect<void> =>
      Effect.unlessEffect(claiming.release(claim), isHeld).pipe(
        Effect.retry(Schedule.intersect(Schedule.spaced(unknownFor), Schedule.recurs(tries))),
        Effect.delay(unknownFor),
        Effect.catchAll(left(`a claim (${claim.kind})`))
      )

    /**
     * Claims, and ends the claim unless this cell has what was claimed. After a write and after an end alike: of two that
     * overlap, the one that claims later sees what the other has written, and leaves the other's end without effect.
     */
    const settled = (claim: Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>, isHeld: IsHeld) =>
      Effect.flatMap(claim, (held) => Effect.unlessEffect(claiming.end(held), isHeld))

    const settledLater = (claim: Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>, isHeld: IsHeld) =>
      settled(claim, isHeld).pipe(
        Effect.catchAll((error) =>
          Effect.logWarning("The directory may lack what this cell has just written; cells reconcile finds out", error)
        ),
        Effect.asVoid
      )

    const under =
      (
        claim: Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>,
        isHeld: IsHeld,
        onWritten: Effect.Effect<void> = Effect.void
      ): UnderClaim =>
      (write) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(claim, (held) =>
            restore(write).pipe(
              Effect.onError((cause) =>
                certainlyFailed(cause)
                  ? releaseNow(held)
                  : Effect.sync(() => {
                      later(releaseLater(held, isHeld))
                    })
              ),
              Effect.tap(() => onWritten)
            )
          )
        )

    /** Of what can also be ended. */
    const underEndable = (
      claim: Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>,
      isHeld: IsHeld
    ): UnderClaim =>
      under(
        claim,
        isHeld,
        Effect.sync(() => {
          later(settledLater(claim, isHeld))
        })
      )

    /** Ends what was claimed, unless it is there again. */
    const ended = (what: string, claim: Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>, isHeld: IsHeld) =>
      settled(claim, isHeld).pipe(
        Effect.timeoutFail({ duration: endPatience, onTimeout: () => new ServiceUnavailable() }),
        // Another cell's by now, so there is nothing to end
        Effect.catchTag("TakenElsewhere", () => Effect.void),
        Effect.catchAll(left(what)),
        Effect.asVoid
      )

    /** An organization that is in another cell by now was moved: its requests belong there, and are answered there. */
    const unlessMoved = (
      organizationId: string | null,
      claim: Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>
    ): Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable> =>
      Effect.mapError(claim, (error) =>
        error._tag === "TakenElsewhere" && organizationId !== null && error.organizationId === organizationId
          ? new ServiceUnavailable({ cause: error })
          : error
      )

    return Claims.of({
      cell,
      tagOf: (organizationId) => organizationId ?? cell,
      organization: (id, isHeld) => under(claiming.claimOrganization(id), isHeld),
      account: (tenant, accountId, isHeld) =>
        underEndable(unlessMoved(tenant.organizationId, claiming.claimAccount(tenant, accountId)), isHeld),
      isAnothersAccount: ({ organizationId }, accountId) =>
        Effect.map(
          Effect.forEach(environments, (environment) => directory.cellOfAccount(environment, accountId)),
          (found) => found.some(Option.exists((one) => one.organizationId !== organizationId))
        ),
      person: (email, organizationId, isHeld) =>
        underEndable(unlessMoved(organizationId, claiming.claimPerson(email, organizationId)), isHeld),
      accountEnded: (tenant, accountId, isHeld) =>
        ended("an account", claiming.claimAccount(tenant, accountId), isHeld),
      membershipEnded: (email, organizationId, isHeld) =>
        ended("a membership", claiming.claimPerson(email, organizationId), isHeld)
    })
  })

/**
 * The claims of a cell.
 *
 * @param cell its name
 */
export const claimsLayer = (cell: string): Layer.Layer<Claims, never, Directory> => Layer.scoped(Claims, make(cell))
