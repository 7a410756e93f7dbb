import { HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Uuid } from "../../platform/bounds/Text.ts"
import {
  errorSchema,
  errorSchemas,
  OrganizationAccessDenied,
  OrganizationAlreadyExists,
  PermissionDenied,
  ResourceNotFound,
  ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { CreatedAt, described, ExpiresAt, optional, strict, withStatus } from "../../platform/kit/Request.ts"
import { CreatedBy, Email, Environments, InvitedRole, WorkspaceEnvironment } from "../Schemas.ts"
import { sessionDelete, sessionGet, sessionGroup, sessionPost } from "../SessionEndpoints.ts"
import { linkPageEndpoint, redemption, SignedIn } from "../sign-in/Api.ts"

export const Invitation = Schema.Struct({
  id: described(Schema.UUID, "The id that paths and the audit log name it by"),
  email: described(Schema.String, "The address that its link was mailed to"),
  role: InvitedRole,
  environments: described(Schema.Array(WorkspaceEnvironment), "The environments in which the person may act"),
  createdAt: CreatedAt,
  createdBy: CreatedBy,
  expiresAt: ExpiresAt
}).annotations({ identifier: "Invitation" })

export const InvitationList = Schema.Struct({
  data: described(Schema.Array(Invitation), "The newest first")
}).annotations({ identifier: "InvitationList" })

export const InvitationPreview = Schema.Struct({
  email: described(Schema.String, "The address that its link was mailed to"),
  organization: described(Schema.String, "The organization's name"),
  role: InvitedRole,
  expiresAt: ExpiresAt
}).annotations({ identifier: "InvitationPreview" })

export const CreateInvitation = strict(
  Schema.Struct({
    email: Email,
    role: InvitedRole,
    environments: optional(
      Environments,
      "The environments whose workspaces a developer or viewer has access to; default none. Admins have access to every workspace"
    )
  }).annotations({ identifier: "CreateInvitation" })
)

const InvitationPath = Schema.Struct({ id: Uuid.annotations({ description: "The invitation's id (UUID)" }) })

export class InvitationsApi extends sessionGroup(
  "invitations",
  "Open invitations to the organization",
  errorSchemas(PermissionDenied, OrganizationAccessDenied, ServiceUnavailable)
)
  .add(
    sessionPost("create", "/identity/invitations", "Invite a person by e-mail")
      .setPayload(CreateInvitation)
      .addSuccess(withStatus(201, Invitation))
      .annotate(
        OpenApi.Description,
        "Mails a link that works once, within 7 days, and replaces an open invitation of the same address. Owners and admins invite; only owners invite admins. At most 50 per organization in an hour and 200 in a day, 30 per inviter in an hour, and 5 in a day to one mailbox; all organizations that neither have an account linked by the operator nor take real payments together send one mailbox at most 20 in a day."
      )
  )
  .add(sessionGet("list", "/identity/invitations", "List open invitations, newest first").addSuccess(InvitationList))
  .add(
    sessionDelete("revoke", "/identity/invitations/:id", "Revoke an open invitation")
      .setPath(InvitationPath)
      .addError(errorSchema(ResourceNotFound))
  ) {}

export class InvitationApi extends HttpApiGroup.make("invitation")
  .add(
    linkPageEndpoint(
      "/identity/invitation",
      "The page that an invitation's link opens",
      "Opening it accepts nothing: the page shows whom the link signs in and where, and its button sends the token, which follows the link's #, to `POST /identity/invitation`. If the console is served, the answer is 303 and leads to its page, which does the same."
    )
  )
  .add(
    redemption(
      "preview",
      "/identity/invitation/preview",
      "Read whom an invitation is for, and to which organization",
      "Accepts nothing: the link's page shows this before the person accepts."
    ).addSuccess(InvitationPreview)
  )
  .add(
    redemption(
      "accept",
      "/identity/invitation",
      "Accept an invitation; signs in and sets the session cookie",
      "A person has one organization: a member of another one leaves it first, and may then use the same link. An invitation ends with its sender's right to invite to its role: it is revoked when they are removed or demoted, and is then refused like any invalid one."
    )
      .addSuccess(SignedIn)
      .addError(errorSchema(OrganizationAlreadyExists))
  )
  .addError(errorSchema(ServiceUnavailable))
  .annotate(OpenApi.Description, "Accepting an invitation") {}
