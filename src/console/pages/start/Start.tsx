import type { ComponentChildren } from "preact"
import { servicePath } from "../../api/Base.ts"
import { call } from "../../api/Call.ts"
import { isSupported } from "../../api/Supported.ts"
import { useKeys } from "../../components/Author.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { Icon } from "../../components/Icon.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Page } from "../../components/Page.tsx"
import { useQuery } from "../../state/Query.ts"
import { useSession, useWorkspace } from "../../state/Session.ts"
import { useDestinations } from "../destinations/useDestinations.ts"

interface Step {
  readonly id: string
  readonly title: string
  readonly words: ComponentChildren
  readonly done: boolean
  /** Offered until it is done. */
  readonly action?: { readonly href: string; readonly label: string } | undefined
}

const StepRow = ({ at, next, step }: { readonly step: Step; readonly at: number; readonly next: boolean }) => (
  <li class={step.done ? "step step-done" : "step"}>
    <span class="step-mark" aria-hidden="true">
      {step.done ? <Icon name="check" /> : at}
    </span>
    <div class="step-text">
      <span class="step-title">
        {step.title}
        <span class="for-readers">{step.done ? " (done)" : " (to do)"}</span>
      </span>
      <span class="step-words">{step.words}</span>
    </div>
    {step.done || step.action === undefined ? null : (
      <div class="step-action">
        <ButtonLink href={step.action.href} kind={next ? "primary" : "plain"}>
          {step.action.label}
        </ButtonLink>
      </div>
    )}
  </li>
)

const Progress = ({ done, of }: { readonly done: number; readonly of: number }) => (
  <div class="progress">
    <p>
      {done} of {of} done
    </p>
    <svg class="progress-bar" viewBox="0 0 100 2" preserveAspectRatio="none" aria-hidden="true">
      <rect class="progress-track" width="100" height="2" rx="1" />
      <rect class="progress-done" width={(100 * done) / of} height="2" rx="1" />
    </svg>
  </div>
)

const pollMillis = 5000

/** How far the workspace has come, as the other pages tell. */
const useFacts = () => {
  const { can, environment } = useWorkspace()
  const poll = { pollMillis }
  const live = environment === "production"
  const account = useQuery("account", (signal) => call("accountConnection", "get", {}, { signal }), poll)
  const keys = useKeys(poll)
  const endpoints = useDestinations(pollMillis)
  const delivered = useQuery(
    "deliveries/first",
    (signal) => call("deliveries", "listAll", { urlParams: { state: "delivered", limit: 1 } }, { signal }),
    poll
  )
  const products = useQuery(
    // Asked once, since it is a request to the provider
    live && can("products:read", "products.list") ? "catalog/first" : null,
    (signal) => call("products", "list", { urlParams: { limit: 1 } }, { signal })
  )
  const returnUrls = useQuery(live ? "return-urls" : null, (signal) => call("returnUrls", "get", {}, { signal }), poll)
  return {
    account,
    accountStatus: account.data?.status,
    hasKey: (keys.data?.data.length ?? 0) > 0,
    endpoint: endpoints.data?.data[0],
    hasDelivered: (delivered.data?.data.length ?? 0) > 0,
    hasProduct: (products.data?.data.length ?? 0) > 0,
    hasReturnPage: typeof returnUrls.data?.successUrl === "string"
  }
}

type Facts = ReturnType<typeof useFacts>

/** The step between key and destination that only production has. */
const goingLive = (
  { hasProduct, hasReturnPage }: Facts,
  { can, mayManageOrganization, path }: ReturnType<typeof useWorkspace>
): ReadonlyArray<Step> => [
  ...(isSupported("products.create")
    ? [
        {
          id: "catalog",
          title: "Create your products again",
          words: "Those of the sandbox don't exist here, and ids differ.",
          done: hasProduct,
          action: can("products:write") ? { href: path("/products"), label: "Create a product" } : undefined
        }
      ]
    : []),
  {
    id: "returns",
    title: "Set your return pages",
    words: "Payers come back to them, over HTTPS. Without them, they come back to the operator's page.",
    done: hasReturnPage,
    action: mayManageOrganization ? { href: path("/account"), label: "Set them" } : undefined
  }
]

const useSteps = (facts: Facts): ReadonlyArray<Step> => {
  const { organization } = useSession()
  const workspace = useWorkspace()
  const { can, environment, mayManageOrganization, path } = workspace
  const { accountStatus, endpoint, hasDelivered, hasKey } = facts
  const live = environment === "production"
  const mayWrite = can("webhook-endpoints:write")
  return [
    { id: "organization", title: "Create your organization", words: organization.name, done: true },
    {
      id: "account",
      title: live ? "Connect the account" : "Connect the sandbox account",
      words:
        accountStatus === "onboarding"
          ? "It is created; the provider still needs its details."
          : "Payments are made by an account of the payment provider.",
      done: accountStatus === "connected",
      action:
        mayManageOrganization && isSupported("accountConnection.startOnboarding")
          ? { href: path("/account"), label: accountStatus === "onboarding" ? "Continue" : "Connect" }
          : undefined
    },
    // A viewer can't see whether a key exists
    ...(organization.role !== "viewer"
      ? [
          {
            id: "key",
            title: "Create your first API key",
            words: "Your program uses it to create checkouts and read payments.",
            done: hasKey,
            action: { href: path("/keys"), label: "Create a key" }
          }
        ]
      : []),
    ...(live ? goingLive(facts, workspace) : []),
    {
      id: "destination",
      title: "Add your first destination",
      words: live
        ? "A public HTTPS URL of yours. Its signing secret differs from the sandbox's."
        : "A URL of yours that gets a signed event whenever something happens.",
      done: endpoint !== undefined,
      action: mayWrite ? { href: path("/destinations/new"), label: "Add a destination" } : undefined
    },
    {
      id: "event",
      title: live ? "Make a first real payment and see its event arrive" : "Send a test event and see it arrive",
      words: live
        ? "Buy something small of your own and refund it: production has no test events."
        : "Ticked when your destination has answered one with success.",
      done: hasDelivered,
      action:
        mayWrite && !live && endpoint !== undefined
          ? { href: path(`/destinations/${endpoint.id}`), label: "Send a test event" }
          : undefined
    }
  ]
}

export default function Start() {
  const { environment } = useWorkspace()
  const facts = useFacts()
  const steps = useSteps(facts)
  const done = steps.filter((step) => step.done).length
  const next = steps.find((step) => !step.done && step.action !== undefined)?.id
  return (
    <Page
      title="Start"
      lead={
        environment === "sandbox"
          ? "The way to your first event, without real money."
          : "From the sandbox to the first real payment, in this order."
      }
    >
      {done === steps.length ? (
        <Notice tone="ok" title="All steps are done">
          <p>
            {environment === "sandbox"
              ? "Try a checkout next, and switch to production once your shop handles its events."
              : "This workspace is ready for payments."}
          </p>
        </Notice>
      ) : (
        <Progress done={done} of={steps.length} />
      )}
      {environment === "production" ? (
        <p>
          The guide <a href={`${servicePath}/docs/going-live`}>Going live</a> says what else changes.
        </p>
      ) : null}
      <Loaded query={facts.account} lines={6}>
        {() => (
          <ol class="steps">
            {steps.map((step, at) => (
              <StepRow key={step.id} step={step} at={at + 1} next={step.id === next} />
            ))}
          </ol>
        )}
      </Loaded>
    </Page>
  )
}
