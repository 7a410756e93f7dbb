import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount } from "../AccountOperations.ts"
import { pageShownTo, shownTo, withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import type { ProviderObject } from "../Schemas.ts"
import { DisputesApi } from "./Api.ts"

/** Removes a dispute's evidence, which can name the payer and hold letters and addresses. */
const withoutEvidence = ({ evidence: _, ...rest }: ProviderObject): ProviderObject => withoutPayer(rest)

export const disputesHandlers = Effect.map(Provider, (provider) =>
  handlersOf(DisputesApi, {
    list: ({ urlParams }) =>
      onAccount((account) => provider.listDisputes(account, urlParams)).pipe(
        Effect.flatMap(pageShownTo(withoutEvidence))
      ),
    get: ({ path }) =>
      onAccount((account) => provider.retrieveDispute(account, path.id)).pipe(Effect.flatMap(shownTo(withoutEvidence)))
  })
)

export const disputesHttp = serve(DisputesApi, disputesHandlers)
