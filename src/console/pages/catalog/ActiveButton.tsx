import { Button } from "../../components/Button.tsx"
import { toast } from "../../state/Toasts.ts"
import { useToastedSubmit } from "./ToastedSubmit.ts"

export interface ActiveButtonProps {
  readonly isActive: boolean
  /** What the button says while it is active, and while it is not: `Deactivate`, `Activate`. */
  readonly words: readonly [deactivate: string, activate: string]
  /** What it is about, for those who hear the button alone. */
  readonly of: string
  readonly set: (active: boolean) => Promise<unknown>
  /** For the head of a page, where it stands beside larger buttons. */
  readonly isLarge?: boolean
  /** Has lists read again. */
  readonly onDone: () => void
}

/** Takes something off sale, or puts it back: at once, since the same button undoes it. */
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
