import { Button } from "../../components/Button.tsx"
import { toast } from "../../state/Toasts.ts"
import { useToastedSubmit } from "./ToastedSubmit.ts"

export interface ActiveButtonProps {
  readonly isActive: boolean
  /** The button's labels while active and inactive: `Deactivate`, `Activate`. */
  readonly words: readonly [deactivate: string, activate: string]
  /** The object's name, for screen readers. */
  readonly of: string
  readonly set: (active: boolean) => Promise<unknown>
  /** For a page's header, next to larger buttons. */
  readonly isLarge?: boolean
  /** Invalidates the lists. */
  readonly onDone: () => void
}

/** Deactivates or reactivates something, without confirmation since the same button undoes it. */
export const ActiveButton = ({
  isActive,
  isLarge = false,
  of,
  onDone,
  set,
  words: [deactivate, activate]
}: ActiveButtonProps) => {
  const { busy, submit } = useToastedSubmit(
    () => set(!isActive),
    () => {
      toast(`${of} is ${isActive ? "inactive" : "active"} now`)
      onDone()
    }
  )
  const word = isActive ? deactivate : activate
  return (
    <Button small={!isLarge} kind={isLarge ? "plain" : "quiet"} busy={busy} label={`${word} ${of}`} onClick={submit}>
      {word}
    </Button>
  )
}
