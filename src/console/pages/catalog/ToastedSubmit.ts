import { toApiError } from "../../api/ApiError.ts"
import { inWords } from "../../components/Reasons.ts"
import { useSubmit } from "../../state/Query.ts"
import { toast } from "../../state/Toasts.ts"

/** A submission by a button outside a form: shows a failure as a toast, with the request id to quote. */
export const useToastedSubmit = <A>(action: (idempotencyKey: string) => Promise<A>, onDone: (answer: A) => void) =>
  useSubmit(async (idempotencyKey) => {
    try {
      return await action(idempotencyKey)
    } catch (failure) {
      const { message, requestId } = toApiError(failure)
      toast(`${inWords(message, {})}${requestId === null ? "" : ` Quote ${requestId} if you ask for help.`}`, "problem")
      throw failure
    }
  }, onDone)
