import { Effect } from "effect"
import { serving } from "../../platform/kit/Handlers.ts"
import { SlowReads } from "../../platform/kit/SlowReads.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { preferReplica } from "../../platform/storage/ReadReplica.ts"
import { Principal } from "../Principal.ts"
import { AuditApi } from "./Api.ts"
import { isSearch, makeAuditList } from "./AuditRepo.ts"

export const auditHttp = serving(
  AuditApi,
  Effect.all([makeAuditList, preferReplica, SlowReads]),
  ([list, onReplica, { inTurn }]) => ({
    list: Effect.fnUntraced(function* ({ urlParams }) {
      const principal = yield* Principal
      const read = orUnavailable(onReplica(list(principal, urlParams)))
      return yield* isSearch(urlParams) ? inTurn(principal)(read) : read
    })
  })
)
