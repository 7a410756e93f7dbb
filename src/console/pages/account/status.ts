import type { AnswerOf } from "../../api/Call.ts"
import type { Tone } from "../../components/charts/chartScales.ts"

export type Connection = AnswerOf<"accountConnection", "get">

interface Words {
  readonly label: string
  readonly tone: Tone
  readonly explanation: string
}

/** The account's status in words; a connected account cannot necessarily charge. */
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
        explanation: "This service no longer acts on the account, and no longer gets its events."
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

/** Whether an account is linked, even if it can't charge yet. */
export const isLinked = ({ status }: Connection): boolean => status === "connected" || status === "onboarding"

export const needsOwner = ({ requirements, status }: Connection): boolean =>
  status === "onboarding" || (status === "connected" && requirements.currentlyDueCount + requirements.pastDueCount > 0)

const linkedByWords = {
  operator: "by the operator",
  onboarding: "by onboarding",
  oauth: "with the owner's consent"
} as const

export const linkedInWords = ({ linkedBy }: Connection): string | null =>
  linkedBy === null ? null : linkedByWords[linkedBy]
