import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import type { ApiError } from "../api/ApiError.ts"
import { Button } from "./Button.tsx"
import { TextField } from "./Field.tsx"
import { Form } from "./Form.tsx"
import { Icon } from "./Icon.tsx"

interface DialogProps {
  readonly title: string
  readonly open: boolean
  readonly onClose: () => void
  readonly footer?: ComponentChildren
  /** Stays open on a click outside and on Escape, for content that is shown only once. */
  readonly keep?: boolean
  readonly children?: ComponentChildren
}

const OpenDialog = (props: DialogProps) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const element = dialog.current
    if (element !== null && !element.open) element.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        if (props.keep !== true) props.onClose()
      }}
      // A click outside the content hits the dialog element itself
      onMouseDown={(event) => {
        if (event.target === dialog.current && props.keep !== true) props.onClose()
      }}
    >
      <div class="dialog-content">
        <header class="dialog-header">
          <h2 id={id}>{props.title}</h2>
          {props.keep === true ? null : (
            <button type="button" class="icon-button" aria-label="Close" onClick={props.onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        <div class="dialog-body">{props.children}</div>
        {props.footer === undefined ? null : <footer class="dialog-footer">{props.footer}</footer>}
      </div>
    </dialog>
  )
}

/** A modal dialog: traps the focus, closes on Escape, and restores the previous focus. */
export const Dialog = (props: DialogProps) => (props.open ? <OpenDialog {...props} /> : null)

interface ConfirmProps {
  readonly title: string
  readonly open: boolean
  readonly onClose: () => void
  readonly onConfirm: () => void
  readonly confirmLabel: string
  readonly danger?: boolean
  readonly busy?: boolean | undefined
  readonly error?: ApiError | undefined
  /** A word that must be typed first; only where money or secrets are involved. */
  readonly typed?: string | undefined
  readonly children?: ComponentChildren
}

const OpenConfirm = (props: ConfirmProps) => {
  const [typed, setTyped] = useState("")
  const [missed, setMissed] = useState(false)
  const confirm = () => {
    const matches = props.typed === undefined || typed.trim() === props.typed
    setMissed(!matches)
    if (matches) props.onConfirm()
  }
  return (
    <Dialog title={props.title} open onClose={props.onClose}>
      <Form
        onSubmit={confirm}
        busy={props.busy}
        error={props.error}
        actions={
          <>
            <Button onClick={props.onClose}>Cancel</Button>
            <Button kind={props.danger === true ? "danger" : "primary"} type="submit" busy={props.busy}>
              {props.confirmLabel}
            </Button>
          </>
        }
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
      </Form>
    </Dialog>
  )
}

/** Asks for confirmation of an action that can't be undone. */
export const Confirm = (props: ConfirmProps) => (props.open ? <OpenConfirm {...props} /> : null)
