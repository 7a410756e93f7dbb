import { type ComponentChildren, createContext } from "preact"
import { useContext, useEffect, useMemo, useRef } from "preact/hooks"
import type { ApiError } from "../api/ApiError.ts"
import { Button } from "./Button.tsx"
import { ErrorNote } from "./Notice.tsx"
import { concerns, reasonFor } from "./Reasons.ts"

/** The last refusal of a form, for its fields. */
interface Refusal {
  readonly error: ApiError | undefined
  readonly labels: Readonly<Record<string, string>>
  /** Registers a field that shows its own refusal. */
  readonly register: (name: string) => () => void
}

const RefusalContext = createContext<Refusal>({ error: undefined, labels: {}, register: () => () => {} })

/** The reason for which the last submission refused this field; undefined if it did not. */
export const useRefusal = (name: string): string | undefined => {
  const { error, labels, register } = useContext(RefusalContext)
  useEffect(() => register(name), [register, name])
  return error === undefined ? undefined : reasonFor(error, name, labels)
}

/** Whether every refused field shows its own reason. */
const isCovered = ({ fields }: ApiError, names: ReadonlyMap<string, number>): boolean =>
  fields.length > 0 && fields.every((field) => [...names.keys()].some((name) => concerns(field, name)))

/**
 * A form; forms must not be nested. Shows the API's refusal at the fields it names, if they are present, and above the
 * buttons with the request id to quote; focuses the first refused field.
 */
export const Form = (props: {
  readonly onSubmit: () => void
  readonly busy?: boolean | undefined
  readonly error?: ApiError | undefined
  /** Labels for messages, by the API's field names. */
  readonly labels?: Readonly<Record<string, string>>
  /** The label of the submit button. */
  readonly submit?: string
  /** Adds a cancel button before the submit button. */
  readonly onCancel?: () => void
  /** Replaces those buttons. */
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) => {
  const form = useRef<HTMLFormElement>(null)
  const names = useRef(new Map<string, number>())
  const { error, labels } = props
  const context = useMemo<Refusal>(
    () => ({
      error,
      labels: labels ?? {},
      register: (name) => {
        names.current.set(name, (names.current.get(name) ?? 0) + 1)
        return () => {
          const left = (names.current.get(name) ?? 1) - 1
          if (left === 0) names.current.delete(name)
          else names.current.set(name, left)
        }
      }
    }),
    [error, labels]
  )
  useEffect(() => {
    if (error !== undefined) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus()
  }, [error])
  const actions =
    props.submit === undefined ? (
      props.actions
    ) : (
      <>
        {props.onCancel === undefined ? null : <Button onClick={props.onCancel}>Cancel</Button>}
        <Button kind="primary" type="submit" busy={props.busy}>
          {props.submit}
        </Button>
      </>
    )
  return (
    <RefusalContext.Provider value={context}>
      <form
        ref={form}
        class="form"
        noValidate
        aria-busy={props.busy === true || undefined}
        onSubmit={(event) => {
          event.preventDefault()
          if (props.busy !== true) props.onSubmit()
        }}
      >
        {props.children}
        {error === undefined ? null : (
          <ErrorNote error={error} labels={labels} atFields={isCovered(error, names.current)} />
        )}
        {actions === undefined ? null : <div class="form-actions">{actions}</div>}
      </form>
    </RefusalContext.Provider>
  )
}
