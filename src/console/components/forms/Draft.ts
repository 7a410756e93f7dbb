import { useState } from "preact/hooks"
import { useSubmit } from "../../state/Query.ts"
import type { Problems, Written } from "./Reader.ts"

/** Binds fields to a draft: each one's name in the API, its value, and the problem found in it. */
export const fieldsOf =
  <D extends object>(draft: D, set: (change: (before: D) => D) => void, problems: Problems = {}, prefix = "") =>
  <K extends keyof D & string>(key: K, name: string = key) => ({
    name: `${prefix}${name}`,
    value: draft[key],
    onChange: (value: D[K]) => set((before) => ({ ...before, [key]: value })),
    problem: problems[name]
  })

/** A form's values that need no check before they are sent. */
export const useFields = <D extends object>(initial: D) => {
  const [draft, setDraft] = useState(initial)
  return { draft, setDraft, field: fieldsOf(draft, setDraft) }
}

/** A form's draft and its submission; problems show after the first attempt to submit it. */
export const useDraft = <D extends object, A extends object, B>({
  initial,
  onClose,
  onDone,
  prefix,
  read,
  send
}: {
  readonly initial: D | (() => D)
  readonly read: (draft: D) => Written<A>
  readonly send: (value: A, idempotencyKey: string) => Promise<B>
  readonly onDone: (answer: B) => void
  /** Called once it is sent, and instead of sending a value without fields: nothing was changed. */
  readonly onClose?: () => void
  /** The prefix of the API's field names, such as `default_price_data.`. */
  readonly prefix?: string
}) => {
  const [draft, setState] = useState(initial)
  const setDraft: (change: (before: D) => D) => void = setState
  const [isTried, setTried] = useState(false)
  const written = read(draft)
  const submission = useSubmit(
    (idempotencyKey) =>
      written.kind === "ready"
        ? send(written.value, idempotencyKey)
        : Promise.reject(new Error("A draft with problems is not sent")),
    (answer) => {
      onDone(answer)
      onClose?.()
    }
  )
  const problems = isTried && written.kind === "problems" ? written.problems : {}
  const onSubmit = () => {
    setTried(true)
    if (written.kind === "problems") return
    if (onClose !== undefined && Object.keys(written.value).length === 0) onClose()
    else submission.submit()
  }
  return {
    draft,
    setDraft,
    problems,
    field: fieldsOf(draft, setDraft, problems, prefix),
    form: { submission, onSubmit }
  }
}

export type Draft<D extends object> = ReturnType<typeof useDraft<D, object, unknown>>
