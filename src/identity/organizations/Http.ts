import { Duration, Effect } from "effect"
import { OrganizationAccessDenied, RateLimitExceeded } from "../../platform/errors/Errors.ts"
import { environments } from "../../platform/kit/Environment.ts"
import { serving } from "../../platform/kit/Handlers.ts"
import { RateLimits } from "../../platform/kit/RateLimit.ts"
import { CurrentSession } from "../Authentication.ts"
import { currentMember } from "../members/CurrentMember.ts"
import { OrganizationsApi } from "./Api.ts"
import { Organizations } from "./Organizations.ts"

/** Limits how often organizations are closed, since the records of each one are kept. */
const closings = { limit: 20, per: Duration.days(1) }

const memberOf = ({ organizationId }: { readonly organizationId: string }) =>
  Effect.filterOrFail(
    currentMember,
    (member) => member.organizationId === organizationId.toLowerCase(),
    () => new OrganizationAccessDenied()
  )

export const organizationsHttp = serving(
  OrganizationsApi,
  Effect.all([Organizations, RateLimits]),
  ([organizations, limits]) => ({
    create: Effect.fnUntraced(function* ({ payload }) {
      const session = yield* CurrentSession
      const { id, name } = yield* organizations.create({ name: payload.name, ownerEmail: session.email })
      return { id, name, workspaces: environments.map((environment) => ({ environment })) }
    }),
    rename: ({ path, payload }) =>
      Effect.flatMap(memberOf(path), ({ author, organizationId }) =>
        organizations.rename({ id: organizationId, name: payload.name, author })
      ),
    close: Effect.fnUntraced(function* ({ path }) {
      const { author, organizationId } = yield* memberOf(path)
      yield* Effect.catchTag(
        limits.take(`organization-closings:${author.id}`, closings),
        "BucketEmpty",
        ({ retryAfter }) =>
          new RateLimitExceeded({
            message: `A person may try to close organizations at most ${closings.limit} times in a day; wait as long as Retry-After says.`,
            retryAfter
          })
      )
      yield* organizations.close(organizationId, author)
    })
  })
)
