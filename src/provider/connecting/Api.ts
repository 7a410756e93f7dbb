import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { text } from "../../bounds/Text.ts"
import {
  AccountAlreadyConnected,
  AccountOauthUnavailable,
  AccountOnboardingUnavailable,
  errorSchemas,
  OrganizationAccessDenied,
  PermissionDenied,
  RateLimitExceeded,
  ResourceNotFound,
  ServiceUnavailable,
  WorkspaceAccessRequired
} from "../../errors/Errors.ts"
import { WorkspaceEnvironment } from "../../identity/Schemas.ts"
import { sessionDelete, sessionGet, sessionGroup, sessionPost } from "../../identity/SessionEndpoints.ts"
import { optional, strict } from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"

const Count = Schema.Int.pipe(Schema.nonNegative())

/** The connection of an environment to its provider account. */
export const AccountConnectionRecord = Schema.Struct({
  environment: WorkspaceEnvironment,
  status: Schema.Literal("not_connected", "onboarding", "connected", "disconnected").annotations({
    description:
      "`onboarding`: linked, but its owner has not submitted the details yet; `connected`: they are submitted, and `chargesEnabled` says whether it can charge; `disconnected`: only connecting it again changes that"
  }),
  accountId: Schema.NullOr(Schema.String).annotations({ description: "Null if no account was ever linked" }),
  chargesEnabled: Schema.Boolean.annotations({ description: "Whether the account can charge" }),
  payoutsEnabled: Schema.Boolean.annotations({ description: "Whether the account can be paid out" }),
  detailsSubmitted: Schema.Boolean.annotations({ description: "Whether its owner has submitted the details" }),
  requirements: Schema.Struct({
    currentlyDueCount: Count.annotations({ description: "How much is due, overdue included" }),
    pastDueCount: Count.annotations({ description: "How much is overdue" }),
    pendingVerificationCount: Count.annotations({ description: "How much the provider is still checking" }),
    disabledReason: Schema.NullOr(Schema.String).annotations({
      description: "Why the provider has disabled something, in its words for programs"
    }),
    currentDeadline: Schema.NullOr(Schema.Date).annotations({ description: "By when what is due has to be supplied" })
  }).annotations({ description: "What the provider asks the account's owner for, as counts" }),
  current: Schema.Boolean.annotations({
    description: "False if the provider could not be asked: the status is then the one that it last reported"
  }),
  linkedBy: Schema.NullOr(Schema.Literal("operator", "onboarding", "oauth")).annotations({
    description:
      "How it was linked: by the operator, created for its owner, or by its owner's consent; null if none was"
  }),
  linkedAt: Schema.NullOr(Schema.Date).annotations({ description: "Null if no account was ever linked" }),
  disconnectedAt: Schema.NullOr(Schema.Date).annotations({ description: "Null if it is not disconnected" }),
  canUseExisting: Schema.Boolean.annotations({
    description: "Whether `POST /identity/account/oauth` can connect an existing account here"
  }),
  disconnecting: Schema.Struct({
    endsProviderAccess: Schema.Boolean.annotations({
      description: "Whether disconnecting also ends the platform's access at the provider"
    }),
    endpointCount: Count.annotations({
      description: "Active endpoints, which would get no further events of the account"
    }),
    checkoutPageCount: Count.annotations({
      description: "Active checkout pages, which could not sell until it is connected"
    }),
    pendingDeliveryCount: Count.annotations({
      description: "Deliveries that would still be made; counted up to 1000"
    })
  }).annotations({ description: "What disconnecting would mean now; zeros and false if nothing is connected" })
}).annotations({ identifier: "AccountConnection" })

/** Body of the operations that start connecting an account. */
export const ConnectAccount = strict(
  Schema.Struct({
    environment: WorkspaceEnvironment.annotations({
      description:
        "The environment to connect: that of the selected workspace. Any other is refused, since it may have been selected in another tab meanwhile"
    })
  }).annotations({ identifier: "ConnectAccount" })
)

/** The URL at which the account's owner continues, and its expiry. */
export const OwnersUrl = Schema.Struct({
  url: Schema.String.annotations({
    description: "For the account's owner alone: open it at once, and do not store it. It works once"
  }),
  expiresAt: Schema.Date
}).annotations({ identifier: "OwnersUrl" })

/** The query of `DELETE /identity/account`. */
export const DisconnectAccount = strict(
  Schema.Struct({
    accountId: text({
      min: 6,
      max: 69,
      pattern: /^acct_\w{1,64}$/,
      rule: "must be the id of a provider account (acct_…)"
    }).annotations({ description: "The account that is meant, as `GET /identity/account` shows it" }),
    environment: optional(
      WorkspaceEnvironment.annotations({
        description:
          "The environment that is meant: that of the selected workspace. Any other is refused, since it may have been selected in another tab meanwhile. An account that is linked in both environments is disconnected only if this, or the header `service-workspace`, names one"
      })
    )
  })
)

/** The provider account of the selected workspace's environment (contract 1.5). */
export class AccountConnectionApi extends sessionGroup(
  "accountConnection",
  "Connecting the provider account",
  errorSchemas(WorkspaceAccessRequired, OrganizationAccessDenied, ServiceUnavailable)
)
  .add(
    sessionGet("get", "/identity/account", "Read how the selected environment's provider account is connected")
      .addSuccess(AccountConnectionRecord)
      .annotate(
        OpenApi.Description,
        "For every member who may enter the workspace. Asks the provider, so that the answer is current when its owner comes back from there. `disconnecting` says what disconnecting would mean: events of the account stop, nothing more can be created or paid here, and deliveries that are pending are still made. Checkout sessions that are open and payment links stay open at the provider: whoever pays there still pays the account."
      )
  )
  .add(
    sessionPost("startOnboarding", "/identity/account/onboarding", "Connect an account by onboarding, or go on with it")
      .setPayload(ConnectAccount)
      .addSuccess(OwnersUrl)
      .addError(
        errorSchemas(PermissionDenied, AccountAlreadyConnected, AccountOnboardingUnavailable, RateLimitExceeded)
      )
      .addError(providerErrors)
      .annotate(
        OpenApi.Description,
        "For owners and admins. Creates an account at the provider, links it at once, and returns the URL of its onboarding; if there is one, it is completed instead: an account that waits for its details, one of which more is due, or the former one after it was disconnected. A repeat creates no second account. The provider leads back to `GET /identity/account/return`, or, if the URL has expired or was used, to `GET /identity/account/refresh`. At most 10 times in 10 minutes and 50 times in a day per organization, together with `POST /identity/account/oauth`."
      )
  )
  .add(
    sessionPost("startOauth", "/identity/account/oauth", "Connect an existing account by its owner's consent")
      .setPayload(ConnectAccount)
      .addSuccess(OwnersUrl)
      .addError(errorSchemas(PermissionDenied, AccountAlreadyConnected, AccountOauthUnavailable, RateLimitExceeded))
      .addError(providerErrors)
      .annotate(
        OpenApi.Description,
        "For owners and admins, if `canUseExisting`. Returns the provider's URL at which the account's owner consents. It has to be opened in this session, within 10 minutes: the provider leads back to `GET /identity/account/oauth/return`, which links the account only for the session that began."
      )
  )
  .add(
    sessionDelete("disconnect", "/identity/account", "Disconnect the account")
      .setUrlParams(DisconnectAccount)
      .addError(errorSchemas(PermissionDenied, ResourceNotFound))
      .addError(providerErrors)
      .annotate(
        OpenApi.Description,
        "For owners. Read `disconnecting` of `GET /identity/account` first. The account itself stays as it is, with its money, payouts and open checkout sessions; this service no longer acts on it and no longer hears of it. If its owner had consented at the provider, that consent ends there, too, unless the account serves another organization, or the sandbox is disconnected while production is connected to the same account; if the provider fails, the account is disconnected here, and a repeat, or the next connection, completes it. Only connecting it again reverses it: by onboarding, by consent, or by the operator."
      )
  ) {}
