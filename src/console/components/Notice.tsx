import type { ComponentChildren } from "preact"
import type { ApiError } from "../api/ApiError.ts"
import { Button } from "./Button.tsx"
import { inWords } from "./forms/Reasons.ts"
import { Icon } from "./Icon.tsx"

type NoticeTone = "info" | "warning" | "problem" | "ok"

export const Notice = (props: {
  readonly tone: NoticeTone
  readonly title?: string | undefined
  readonly actions?: ComponentChildren
  readonly children?: ComponentChildren
}) => (
  <div class={`notice notice-${props.tone}`}>
    <Icon name={props.tone === "ok" ? "check" : props.tone === "info" ? "info" : "warning"} />
    <div class="notice-body">
      {props.title === undefined ? null : <p class="notice-title">{props.title}</p>}
      {props.children === undefined ? null : <div>{props.children}</div>}
      {props.actions === undefined || props.actions === null ? null : <div class="notice-actions">{props.actions}</div>}
    </div>
  </div>
)

const waitInWords = (seconds: number): string =>
  seconds < 90 ? `${seconds} second${seconds === 1 ? "" : "s"}` : `${Math.ceil(seconds / 60)} minutes`

/** Shows a failed call: the service's message, when to retry, and the request id to quote. */
export const ErrorNote = ({
  atFields = false,
  error,
  labels = {},
  retry
}: {
  readonly error: ApiError
  readonly retry?: (() => void) | undefined
  /** Labels for messages, by the API's field names. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Whether the fields themselves show their refusals. */
  readonly atFields?: boolean
}) => (
  <div role="alert">
    <Notice
      tone="problem"
      actions={
        retry === undefined ? null : (
          <Button small onClick={retry}>
            Try again
          </Button>
        )
      }
    >
      <p>{atFields ? "Check the fields marked above." : inWords(error.message, labels)}</p>
      {error.retryAfterSeconds === null ? null : <p>Try again in {waitInWords(error.retryAfterSeconds)}.</p>}
      {error.requestId === null ? null : (
        <p class="notice-request">
          If you ask for help, quote <code>{error.requestId}</code>.
        </p>
      )}
    </Notice>
  </div>
)
