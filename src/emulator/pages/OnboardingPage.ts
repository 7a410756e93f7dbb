import { Effect, Schema } from "effect"
import { connectedAccount } from "../Authentication.ts"
import * as Params from "../api/Params.ts"
import { onAccount, type RequestContext } from "../api/Route.ts"
import { changedAccount } from "../control/AccountChanges.ts"
import type { HttpReply } from "../Http.ts"
import { newUrlToken } from "../Ids.ts"
import type { Account, OnboardingVisit } from "../Records.ts"
import { maxBusinessName, onboardingPage } from "./OwnerPages.ts"
import { htmlReply, messageReply, type Page, redirect } from "./PageLayout.ts"

const submission = Schema.Struct({
  action: Params.oneOf("finish", "partial", "leave"),
  name: Params.optional(Params.clearable(Params.text(maxBusinessName)))
})

/** The requirement that becomes due if the owner omits it. */
const document = "individual.verification.document"

const unknown = messageReply(404, "Not found", "There is no such page. Start the onboarding again from the platform.")

/** The account after its owner has submitted everything, or everything except a document. */
const completed = (account: Account, name: string, complete: boolean): Account => {
  const due = complete ? [] : [document]
  return {
    ...changedAccount(account, {
      business_profile: { name },
      capabilities: { card_payments: "active", transfers: complete ? "active" : "inactive" },
      charges_enabled: true,
      details_submitted: true,
      payouts_enabled: complete,
      requirements: {
        current_deadline: null,
        currently_due: due,
        disabled_reason: complete ? null : "requirements.past_due",
        eventually_due: due,
        past_due: due,
        pending_verification: []
      }
    }),
    business_type: account.business_type ?? "company"
  }
}

const submit = (
  context: RequestContext,
  visit: OnboardingVisit,
  account: Account,
  { action, name }: typeof submission.Type
): HttpReply => {
  const back = redirect(visit.returnUrl, "Thank you", "Back to the platform.")
  if (action === "leave") {
    context.platform.objects.remove("onboarding_visit", visit.id)
    return back
  }
  const trimmed = (name ?? "").trim()
  if (trimmed === "") {
    return htmlReply(422, onboardingPage(account, "Enter the name of your business."))
  }
  const after = completed(account, trimmed, action === "finish")
  context.platform.objects.put("account", account.id, after)
  context.platform.objects.remove("onboarding_visit", visit.id)
  context.emit({ type: "account.updated", shape: "account", object: after, previous: account })
  return back
}

export const accountLinkPage: Page = (service, { id: requestId }, accountId, token) =>
  onAccount(service, { account: accountId, requestId }, ({ now, platform: { objects: platform } }) =>
    Effect.sync(() => {
      const link = platform.get("account_link", token)
      if (link === undefined || link.account !== accountId) return unknown
      if (link.opened || link.expires <= now || connectedAccount(platform, accountId) === undefined) {
        return redirect(link.refreshUrl, "This link no longer works", "Back to the platform.")
      }
      platform.put("account_link", token, { ...link, opened: true })
      const id = newUrlToken()
      platform.put("onboarding_visit", id, { id, account: accountId, returnUrl: link.returnUrl, created: now })
      return redirect(`${service.baseUrl}/setup/e/${accountId}/${id}`, "Set up your payments", "On to the form.")
    })
  )

/**
 * The page of an account's onboarding. `GET /setup/e/<account>/<token>` shows it, `POST` performs its buttons' actions:
 * `action=finish` submits everything, `action=partial` everything except a document, `action=leave` nothing. Each
 * redirects to the platform (303) and ends the visit; the first two change the account. Event: `account.updated`.
 */
export const accountSetupPage: Page = (service, request, accountId, token) =>
  onAccount(service, { account: accountId, requestId: request.id }, (context) => {
    const platform = context.platform.objects
    const visit = platform.get("onboarding_visit", token)
    const account = connectedAccount(platform, accountId)
    if (visit === undefined || visit.account !== accountId || account === undefined) return Effect.succeed(unknown)
    if (request.method === "GET") return Effect.succeed(htmlReply(200, onboardingPage(account, undefined)))
    return Effect.match(Params.decodeForm(submission, request.body), {
      onFailure: ({ message, status }) => htmlReply(status, onboardingPage(account, message)),
      onSuccess: (submitted) => submit(context, visit, account, submitted)
    })
  })
