import { useEffect, useRef, useState } from "preact/hooks"
import { toast } from "../state/Toasts.ts"
import { Icon } from "./Icon.tsx"

const useCopy = (text: string) => {
  const [copied, setCopied] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = () => {
    // Undefined without a secure connection
    const written: Promise<void> | undefined = navigator.clipboard?.writeText(text)
    if (written === undefined) {
      toast("This browser does not let the page copy. Select the text and copy it yourself.", "problem")
      return
    }
    written.then(
      () => {
        setCopied(true)
        clearTimeout(timer.current)
        timer.current = setTimeout(() => setCopied(false), 2000)
      },
      () => toast("The browser refused to copy. Select the text and copy it yourself.", "problem")
    )
  }
  return { copied, copy }
}

export const Copy = ({ label, text }: { readonly text: string; readonly label: string }) => {
  const { copied, copy } = useCopy(text)
  return (
    <button type="button" class="button button-plain button-small" onClick={copy}>
      <Icon name={copied ? "check" : "copy"} />
      <span aria-live="polite">{copied ? "Copied" : label}</span>
    </button>
  )
}

const shortened = (value: string): string => (value.length <= 20 ? value : `${value.slice(0, 10)}…${value.slice(-6)}`)

/** An id with a copy button, shortened unless `full`; `plain` omits the button, for links. */
export const Id = (props: { readonly value: string; readonly full?: boolean; readonly plain?: boolean }) => {
  const { value } = props
  const { copied, copy } = useCopy(value)
  const code = <code title={value}>{props.full === true ? value : shortened(value)}</code>
  return props.plain === true ? (
    code
  ) : (
    <span class="id">
      {code}
      <button
        type="button"
        class="icon-button icon-button-small"
        aria-label={copied ? "Copied" : `Copy ${value}`}
        onClick={copy}
      >
        <Icon name={copied ? "check" : "copy"} />
      </button>
    </span>
  )
}
