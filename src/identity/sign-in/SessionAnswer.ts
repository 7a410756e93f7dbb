import { Effect } from "effect"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { permissionsOf } from "../keys/GrantPolicy.ts"
import { Organizations } from "../organizations/Organizations.ts"
import type { Session } from "../Principal.ts"
import type { SignedIn } from "./Api.ts"

export const makeSessionAnswer = Effect.map(
  Organizations,
  (organizations) =>
    ({ email, environment, expiresAt, membership, personId }: Session): Effect.Effect<SignedIn, ServiceUnavailable> =>
      Effect.gen(function* () {
        // A membership always has its organization: a missing one would be a bug
        const organization =
          membership === null
            ? null
            : yield* organizations.get(membership.organizationId).pipe(
                Effect.catchTag("ResourceNotFound", Effect.die),
                Effect.map(({ id, name }) => ({ id, name, role: membership.role }))
              )
        return {
          person: { id: personId, email },
          organization,
          environment,
          workspaces:
            membership === null
              ? []
              : membership.environments.map((environment) => ({
                  environment,
                  permissions: [...permissionsOf(membership.role)]
                })),
          expiresAt
        }
      })
)
