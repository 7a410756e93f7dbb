import type { AnswerOf } from "../../api/Call.ts"
import type { Tone } from "../../components/Badge.tsx"

export type Connection = AnswerOf<"accountConnection", "get">

interface Words {
  readonly label: string
  readonly tone: Tone
  readonly explanation: string
}

/** How the account is, in words: connected is not enough to charge. */
export const statusWords = ({ chargesEnabled, payoutsEnabled, requirements, status }: Connection): Words => {
  switch (status) {
    case "not_connected":
      return {
        label: "Not connected",
        tone: "neutral",
        explanation: "No payments can be made here until an account of the payment provider is connected."
      }
    case "onboarding":
      return {
        label: "Details missing",
        tone: "warning",
        explanation:
          "The account is created and linked. The provider still needs its owner's details before it can charge."
      }
    case "disconnected":
      return {
        label: "Disconnected",
        tone: "problem",
        explanation: "This service no longer acts on the account, and no longer hears of it."
      }
    case "connected":
      if (!chargesEnabled) {
        return {
          label: "Can't charge yet",
          tone: "warning",
          explanation:
            requirements.currentlyDueCount + requirements.pastDueCount > 0
              ? "The provider needs more details before the account can charge."
              : "The provider is checking the details. That can take a few days."
        }
      }
      return payoutsEnabled
        ? { label: "Connected", tone: "ok", explanation: "The account can charge and is paid out." }
        : {
            label: "No payouts",
            tone: "warning",
            explanation: "The account can charge, but is not paid out at the moment."
          }
  }
}

/** Whether its owner has something to supply at the provider. */
export const needsOwner = ({ requirements, status }: Connection): boolean =>
  status === "onboarding" || (status === "connected" && requirements.currentlyDueCount + requirements.pastDueCount > 0)

const linkedByWords = {
  operator: "by the operator",
  onboarding: "by onboarding",
  oauth: "with the owner's consent"
} as const

export const linkedInWords = ({ linkedBy }: Connection): string | null =>
  linkedBy === null ? null : linkedByWords[linkedBy]

interface VisitWords {
  readonly tone: "ok" | "info" | "warning" | "problem"
  readonly text: string
}

/** By what the address says, which may be anything. */
const words = (all: Readonly<Record<string, VisitWords>>): ReadonlyMap<string, VisitWords> =>
  new Map(Object.entries(all))

const visits: Readonly<Record<"onboarding" | "oauth", ReadonlyMap<string, VisitWords>>> = {
  onboarding: words({
    returned: { tone: "info", text: "You are back from the provider. The status below is the current one." },
    expired: { tone: "warning", text: "That link had expired or was used already. Go on with a new one below." }
  }),
  oauth: words({
    connected: { tone: "ok", text: "The account is connected." },
    denied: { tone: "info", text: "The account's owner declined at the provider. Nothing was connected." },
    expired: {
      tone: "warning",
      text: "That visit to the provider was too old, or begun in another session. Begin again."
    },
    taken: {
      tone: "problem",
      text: "The account was not connected: it belongs to another organization, or another account is connected here."
    },
    refused: {
      tone: "problem",
      text: "The account was not connected: it is of the wrong mode or scope, or you may no longer connect accounts."
    },
    failed: { tone: "problem", text: "The provider did not answer as it should. Nothing was connected: begin again." }
  })
}

/** What the address says about a visit to the provider that has just ended; undefined for words that are none of them. */
export const wordsOfVisit = (kind: "onboarding" | "oauth", ended: string): VisitWords | undefined =>
  visits[kind].get(ended)
