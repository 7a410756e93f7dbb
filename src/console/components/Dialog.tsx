import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import { type Submission, useSubmit } from "../state/Query.ts"
import { Button, type ButtonKind } from "./Button.tsx"
import { TextField } from "./forms/Field.tsx"
import { Form, type FormProps } from "./forms/Form.tsx"
import { Icon } from "./Icon.tsx"

/** Opens a modal `<dialog>` while it is mounted. Escape and a click outside its content close it. */
export const Modal = ({
  children,
  onClose,
  ...attributes
}: {
  readonly class: string
  readonly "aria-label"?: string
  readonly "aria-labelledby"?: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const element = dialog.current
    if (element !== null && !element.open) element.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      {...attributes}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      // A click outside the content hits the dialog element itself
      onMouseDown={(event) => {
        if (event.target === dialog.current) onClose()
      }}
    >
      {children}
    </dialog>
  )
}

/** A modal dialog: traps the focus, closes on Escape, and restores the previous focus. */
export const Dialog = (props: {
  readonly title: string
  readonly onClose: () => void
  /** For content that is shown only once: only its button at the bottom closes the dialog, no click outside, no Escape. */
  readonly keep?: boolean
  readonly children?: ComponentChildren
}) => {
  const id = useId()
  const body = useRef<HTMLDivElement>(null)
  // After the dialog is open: by itself it focuses the first button, which closes it
  useEffect(() => body.current?.querySelector<HTMLElement>("input, select, textarea")?.focus(), [])
  return (
    <Modal class="dialog" aria-labelledby={id} onClose={props.keep === true ? () => {} : props.onClose}>
      <div class="dialog-content">
        <header class="dialog-header">
          <h2 id={id}>{props.title}</h2>
          {props.keep === true ? null : (
            <button type="button" class="icon-button" aria-label="Close" onClick={props.onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        <div class="dialog-body" ref={body}>
          {props.children}
        </div>
        {props.keep === true ? (
          <footer class="dialog-footer">
            <Button kind="primary" onClick={props.onClose}>
              I have stored it
            </Button>
          </footer>
        ) : null}
      </div>
    </Modal>
  )
}

export const FormDialog = ({
  onClose,
  title,
  ...form
}: { readonly title: string; readonly onClose: () => void } & Omit<FormProps, "actions" | "onCancel">) => (
  <Dialog title={title} onClose={onClose}>
    <Form {...form} onCancel={onClose} />
  </Dialog>
)

interface Confirmation {
  readonly title: string
  readonly confirmLabel: string
  readonly danger?: boolean
  /** A word that must be typed first; only where money or secrets are involved. */
  readonly typed?: string | undefined
  readonly children?: ComponentChildren
}

export const Confirm = ({
  submission,
  ...props
}: Confirmation & {
  readonly onClose: () => void
  readonly submission: Submission
  /** Called when the action is confirmed; default: submits it. */
  readonly onConfirm?: () => void
}) => {
  const [typed, setTyped] = useState("")
  const [missed, setMissed] = useState(false)
  const confirm = () => {
    const matches = props.typed === undefined || typed.trim() === props.typed
    setMissed(!matches)
    if (matches) (props.onConfirm ?? submission.submit)()
  }
  return (
    <FormDialog
      title={props.title}
      onClose={props.onClose}
      onSubmit={confirm}
      submission={submission}
      submit={props.confirmLabel}
      danger={props.danger === true}
    >
      <div class="prose">{props.children}</div>
      {props.typed === undefined ? null : (
        <TextField
          name="confirmation"
          label={`Type ${props.typed} to confirm`}
          value={typed}
          onChange={setTyped}
          problem={missed ? `Type ${props.typed}, as it is written here.` : undefined}
          monospace
        />
      )}
    </FormDialog>
  )
}

export const ConfirmButton = <A,>({
  action,
  button,
  kind,
  label,
  onDone,
  small = false,
  ...confirmation
}: Omit<Confirmation, "confirmLabel"> & {
  readonly button: string
  /** The label of the button that confirms; default: the same. */
  readonly confirmLabel?: string
  /** For a button whose text alone is unclear. */
  readonly label?: string
  readonly kind?: ButtonKind
  readonly small?: boolean
  readonly action: (idempotencyKey: string) => Promise<A>
  readonly onDone?: (answer: A) => void
}) => {
  const [isAsked, setAsked] = useState(false)
  const submission = useSubmit(action, (answer) => {
    setAsked(false)
    onDone?.(answer)
  })
  const ask = () => {
    submission.reset()
    setAsked(true)
  }
  return (
    <>
      <Button kind={kind} small={small} label={label} onClick={ask}>
        {button}
      </Button>
      {isAsked ? (
        <Confirm confirmLabel={button} {...confirmation} submission={submission} onClose={() => setAsked(false)} />
      ) : null}
    </>
  )
}
