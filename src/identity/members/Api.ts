import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Uuid } from "../../platform/bounds/Text.ts"
import {
  errorSchemas,
  OrganizationAccessDenied,
  PermissionDenied,
  ResourceNotFound,
  ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { BooleanFromQuery, described, optional, strict } from "../../platform/kit/Request.ts"
import { Environments, MemberRole, WorkspaceEnvironment } from "../Schemas.ts"
import { sessionDelete, sessionGet, sessionGroup, sessionPatch } from "../SessionEndpoints.ts"

export const Member = Schema.Struct({
  personId: described(Schema.UUID, "The person's UUID, as the audit log names them"),
  email: described(Schema.String, "The address that links are mailed to"),
  role: MemberRole,
  environments: described(
    Schema.Array(WorkspaceEnvironment),
    "The environments whose workspaces the member may enter: all for owners and admins, else those granted"
  ),
  joinedAt: described(Schema.Date, "When the person joined, in ISO 8601")
}).annotations({ identifier: "Member" })

export const MemberList = Schema.Struct({
  data: described(Schema.Array(Member), "In the order in which they joined")
}).annotations({ identifier: "MemberList" })

export const UpdateMember = strict(
  Schema.Struct({
    role: optional(MemberRole),
    environments: optional(Environments, "Replaces the granted ones; for developers and viewers only")
  }).annotations({ identifier: "UpdateMember" })
)

export const MemberKeys = strict(
  Schema.Struct({
    keep_keys: optional(
      BooleanFromQuery,
      "true keeps the API keys that the member created; otherwise those that they could no longer give are revoked. Not allowed for your own keys"
    )
  })
)

const MemberPath = Schema.Struct({ personId: Uuid.annotations({ description: "The person's id (UUID)" }) })

export class MembersApi extends sessionGroup(
  "members",
  "Members of the organization, their roles and workspaces",
  errorSchemas(OrganizationAccessDenied, ServiceUnavailable)
)
  .add(
    sessionGet("list", "/identity/members", "List members, in the order in which they joined").addSuccess(MemberList)
  )
  .add(
    sessionPatch("update", "/identity/members/:personId", "Change a member's role and access to workspaces")
      .setPath(MemberPath)
      .setUrlParams(MemberKeys)
      .setPayload(UpdateMember)
      .addSuccess(Member)
      .addError(errorSchemas(PermissionDenied, ResourceNotFound))
      .annotate(
        OpenApi.Description,
        "Owners change everybody, admins developers and viewers; only owners appoint owners and admins. The last owner stays an owner. Takes effect with the member's next request. Open invitations that the member sent and API keys that they created are revoked if they could no longer create them; `keep_keys` keeps the keys."
      )
  )
  .add(
    sessionDelete("remove", "/identity/members/:personId", "Remove a member, or leave")
      .setPath(MemberPath)
      .setUrlParams(MemberKeys)
      .addError(errorSchemas(PermissionDenied, ResourceNotFound))
      .annotate(
        OpenApi.Description,
        "Every member but the last owner may leave; others are removed by those who may change them. Sessions lose the organization at once. The open invitations that the member sent and the API keys that they created are revoked; `keep_keys` keeps the keys."
      )
  ) {}
