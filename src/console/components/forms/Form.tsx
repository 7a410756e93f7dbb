import { type ComponentChildren, createContext } from "preact"
import { useCallback, useContext, useEffect, useRef } from "preact/hooks"
import type { ApiError } from "../../api/ApiError.ts"
import type { Submission } from "../../state/Query.ts"
import { Button } from "../Button.tsx"
import { ErrorNote } from "../Notice.tsx"
import { concerns, reasonFor } from "./Reasons.ts"

interface Refusal {
  readonly error: ApiError | undefined
  /** The labels of the fields that show their own refusals, by the API's names. */
  readonly labels: Readonly<Record<string, string>>
  readonly register: (name: string, label: string) => () => void
}

const RefusalContext = createContext<Refusal>({ error: undefined, labels: {}, register: () => () => {} })

/** Why the last submission refused this field, with its label instead of the API's name; undefined if it did not. */
export const useRefusal = (name: string, label: string): string | undefined => {
  const { error, labels, register } = useContext(RefusalContext)
  useEffect(() => register(name, label), [register, name, label])
  return error === undefined ? undefined : reasonFor(error, name, labels)
}

const isCovered = ({ fields }: ApiError, labels: Refusal["labels"]): boolean =>
  fields.length > 0 && fields.every((field) => Object.keys(labels).some((name) => concerns(field, name)))

export interface FormProps {
  readonly submission: Submission
  /** Called to submit the form; default: submits at once. */
  readonly onSubmit?: () => void
  readonly submit?: string
  readonly danger?: boolean
  /** Adds a cancel button before the submit button. */
  readonly onCancel?: () => void
  readonly actions?: ComponentChildren
  readonly children?: ComponentChildren
}

/**
 * A form; forms must not be nested. Shows the API's refusal at the fields it names, if they are present, and above the
 * buttons with the request id to quote; focuses the first refused field.
 */
export const Form = (props: FormProps) => {
  const { busy, error, submit } = props.submission
  const form = useRef<HTMLFormElement>(null)
  const fields = useRef<ReadonlyArray<readonly [name: string, label: string]>>([])
  const register = useCallback((name: string, label: string) => {
    const field = [name, label] as const
    fields.current = [...fields.current, field]
    return () => {
      fields.current = fields.current.filter((other) => other !== field)
    }
  }, [])
  const labels = Object.fromEntries(fields.current)
  useEffect(() => {
    if (error !== undefined) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus()
  }, [error])
  const actions =
    props.submit === undefined ? (
      props.actions
    ) : (
      <>
        {props.onCancel === undefined ? null : <Button onClick={props.onCancel}>Cancel</Button>}
        <Button kind={props.danger === true ? "danger" : "primary"} type="submit" busy={busy}>
          {props.submit}
        </Button>
      </>
    )
  return (
    <RefusalContext.Provider value={{ error, labels, register }}>
      <form
        ref={form}
        class="form"
        noValidate
        aria-busy={busy || undefined}
        onSubmit={(event) => {
          event.preventDefault()
          if (!busy) (props.onSubmit ?? submit)()
        }}
      >
        {props.children}
        {error === undefined ? null : <ErrorNote error={error} labels={labels} atFields={isCovered(error, labels)} />}
        {actions === undefined ? null : <div class="form-actions">{actions}</div>}
      </form>
    </RefusalContext.Provider>
  )
}
