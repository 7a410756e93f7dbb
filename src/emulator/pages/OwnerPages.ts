import type { Account } from "../Records.ts"
import { type Html, html, page, refusalOf } from "./PageLayout.ts"

export const maxBusinessName = 100

const wordsOf: Readonly<Record<string, string>> = {
  "business_profile.name": "the name of your business",
  business_type: "the kind of your business",
  external_account: "a bank account for payouts",
  "individual.verification.document": "a document that shows who you are",
  "tos_acceptance.date": "your consent to the terms"
}

const dueItems = ({ requirements }: Account): Html => {
  const due = requirements?.currently_due ?? []
  return due.length === 0
    ? html`<p>Nothing is due. You can change what you entered.</p>
`
    : html`<h2>Still needed</h2>
<ul>${due.map((name) => html`<li>${wordsOf[name] ?? name}</li>`)}</ul>
`
}

export const onboardingPage = (account: Account, refusal: string | undefined): string =>
  page(
    "Set up your payments",
    html`${refusalOf(refusal)}<p>The platform has asked the payment provider to open an account for you: <strong>${account.id}</strong>. A real
provider asks for much more. Enter no real data.</p>
${dueItems(account)}<form method="post">
<label>Name of your business
<input name="name" autocomplete="organization" required maxlength="${String(maxBusinessName)}" value="${
      account.business_profile?.name ?? ""
    }"></label>
<button class="main" name="action" value="finish">Submit everything</button>
<fieldset>
<legend>Test mode: choose what happens</legend>
<p>Submit everything enables charges and payouts at once. Or:</p>
<button name="action" value="partial">Leave out a document</button>
<p>Charges are enabled, payouts are not, and the document is due.</p>
<button name="action" value="leave" formnovalidate>Give up</button>
<p>Nothing is submitted, and you go back to the platform.</p>
</fieldset>
</form>`
  )

export interface Consent {
  readonly accounts: ReadonlyArray<Account>
  readonly mayWrite: boolean
  readonly refusal: string | undefined
}

const accountChoice = ({ business_profile, id }: Account, index: number): Html => {
  const label = business_profile?.name == null ? id : `${business_profile.name} (${id})`
  return html`<label class="choice"><input type="radio" name="account" value="${id}"${index === 0 && html` checked`}> <span>${label}</span></label>
`
}

export const consentPage = ({ accounts, mayWrite, refusal }: Consent): string =>
  page(
    "Connect your account",
    html`${refusalOf(refusal)}<p><strong>Emulated platform</strong> asks for access to your account at the payment provider: to read it${
      mayWrite ? ", and to create products, payments and refunds on it" : ""
    }. You can end the access at any time.</p>
<form method="post">
<fieldset class="choices">
<legend>Your account</legend>
${accounts.map(accountChoice)}<label class="choice"><input type="radio" name="account" value="new"${accounts.length === 0 && html` checked`}> <span>A new test account, complete and ready to charge</span></label>
</fieldset>
<button class="main" name="action" value="connect">Connect my account</button>
<button name="action" value="decline">Decline</button>
</form>`
  )
