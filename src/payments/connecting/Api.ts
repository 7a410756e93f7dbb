import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { WorkspaceEnvironment } from "../../identity/Schemas.ts"
import { sessionDelete, sessionGet, sessionGroup, sessionPost } from "../../identity/SessionEndpoints.ts"
import { text } from "../../platform/bounds/Text.ts"
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
} from "../../platform/errors/Errors.ts"
import { described, ExpiresAt, optional, strict } from "../../platform/kit/Request.ts"
import { NeededCalls } from "../Endpoints.ts"
import { providerErrors } from "../ProviderErrors.ts"

const Count = Schema.Int.pipe(Schema.nonNegative())

export const AccountConnectionRecord = Schema.Struct({
  environment: WorkspaceEnvironment,
  status: Schema.Literal("not_connected", "onboarding", "connected", "disconnected").annotations({
    identifier: "AccountConnectionStatus",
    description:
      "`onboarding`: linked, but its owner has not submitted the details yet; `connected`: they are submitted, and `chargesEnabled` says whether it can charge; `disconnected`: only connecting it again changes that"
  }),
  accountId: described(Schema.NullOr(Schema.String), "Null if no account was ever linked"),
  chargesEnabled: described(Schema.Boolean, "Whether the account can charge"),
  payoutsEnabled: described(Schema.Boolean, "Whether the account can be paid out"),
  detailsSubmitted: described(Schema.Boolean, "Whether its owner has submitted the details"),
  requirements: Schema.Struct({
    currentlyDueCount: described(Count, "How much is due, overdue included"),
    pastDueCount: described(Count, "How much is overdue"),
    pendingVerificationCount: described(Count, "How much the provider is still checking"),
    disabledReason: described(Schema.NullOr(Schema.String), "The provider's code for why it has disabled something"),
    currentDeadline: described(Schema.NullOr(Schema.Date), "The deadline for what is due")
  }).annotations({
    identifier: "AccountConnectionRequirements",
    description: "What the provider asks the account's owner for, as counts"
  }),
  current: described(
    Schema.Boolean,
    "False if the provider could not be asked: the status is then the one that it last reported"
  ),
  linkedBy: described(
    Schema.NullOr(
      Schema.Literal("operator", "onboarding", "oauth").annotations({ identifier: "AccountConnectionLinkedBy" })
    ),
    "How it was linked: by the operator, created for its owner, or by its owner's consent; null if none was"
  ),
  linkedAt: described(Schema.NullOr(Schema.Date), "Null if no account was ever linked"),
  disconnectedAt: described(Schema.NullOr(Schema.Date), "Null if it is not disconnected"),
  canUseExisting: described(
    Schema.Boolean,
    "Whether `POST /identity/account/oauth` can connect an existing account here"
  ),
  disconnecting: Schema.Struct({
    endsProviderAccess: described(
      Schema.Boolean,
      "Whether disconnecting also ends the platform's access at the provider"
    ),
    endpointCount: described(Count, "Active endpoints, which would get no further events of the account"),
    checkoutPageCount: described(Count, "Active checkout pages, which could not sell until it is connected"),
    pendingDeliveryCount: described(Count, "Deliveries that would still be made; counted up to 1000")
  }).annotations({
    identifier: "AccountConnectionDisconnecting",
    description: "The consequences of disconnecting now; zeros and false if nothing is connected"
  })
}).annotations({ identifier: "AccountConnection" })

export const ConnectAccount = strict(
  Schema.Struct({
    environment: described(
      WorkspaceEnvironment,
      "The environment to connect: that of the selected workspace. Any other is refused, since it may have been selected in another tab meanwhile"
    )
  }).annotations({ identifier: "ConnectAccount" })
)

export const OwnersUrl = Schema.Struct({
  url: described(Schema.String, "For the account's owner alone: open it at once, and do not store it. It works once"),
  expiresAt: ExpiresAt
}).annotations({ identifier: "OwnersUrl" })

export const DisconnectAccount = strict(
  Schema.Struct({
    accountId: text({
      min: 6,
      max: 69,
      pattern: /^acct_\w{1,64}$/,
      rule: "must be the id of a provider account (acct_…)"
    }).annotations({ description: "The id of the account to disconnect, as in `GET /identity/account`" }),
    environment: optional(
      WorkspaceEnvironment,
      "The environment to disconnect: that of the selected workspace. Any other is refused, since it may have been selected in another tab meanwhile. An account that is linked in both environments is disconnected only if this, or the header `service-workspace`, names one"
    )
  })
)

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
        "For every member who may enter the workspace. Asks the provider, so that the answer is up to date when the account's owner returns from there. `disconnecting` says what disconnecting would mean: events of the account stop, nothing more can be created or paid here, and pending deliveries are still made. Open checkout sessions and payment links stay open at the provider: whoever pays there still pays the account."
      )
  )
  .add(
    sessionPost("startOnboarding", "/identity/account/onboarding", "Connect an account by onboarding, or resume that")
      .setPayload(ConnectAccount)
      .addSuccess(OwnersUrl)
      .addError(
        errorSchemas(PermissionDenied, AccountAlreadyConnected, AccountOnboardingUnavailable, RateLimitExceeded)
      )
      .addError(providerErrors)
      .annotate(NeededCalls, ["createAccount", "createOnboardingUrl"])
      .annotate(
        OpenApi.Description,
        "For owners and admins. Creates an account at the provider, links it at once, and returns the URL of its onboarding; an existing account is completed instead: one that awaits its details or owes more of them, or the former one after it was disconnected. A repeat creates no second account. The provider leads back to `GET /identity/account/return`, or, if the URL has expired or was used, to `GET /identity/account/refresh`. At most 10 times in 10 minutes and 50 times in a day per organization, together with `POST /identity/account/oauth`."
      )
  )
  .add(
    sessionPost("startOauth", "/identity/account/oauth", "Connect an existing account by its owner's consent")
      .setPayload(ConnectAccount)
      .addSuccess(OwnersUrl)
      .addError(errorSchemas(PermissionDenied, AccountAlreadyConnected, AccountOauthUnavailable, RateLimitExceeded))
      .addError(providerErrors)
      .annotate(NeededCalls, ["redeemAuthorization"])
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
        "For owners. Read `disconnecting` of `GET /identity/account` first. The account itself stays as it is, with its money, payouts and open checkout sessions; this service no longer acts on it and no longer receives its notifications. If its owner had consented at the provider, that consent ends there, too, unless the account serves another organization, or the sandbox is disconnected while production is connected to the same account; if the provider fails, the account is disconnected here, and a repeat, or the next connection, completes it. Only connecting it again reverses it: by onboarding, by consent, or by the operator."
      )
  ) {}
