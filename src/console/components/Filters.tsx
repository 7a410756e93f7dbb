import { type ComponentChildren, toChildArray } from "preact"
import { useId, useState } from "preact/hooks"
import { Badge } from "./Badge.tsx"
import { Button } from "./Button.tsx"
import { Icon } from "./Icon.tsx"

/** A row of filters above a table; on a narrow screen they collapse behind a button. */
export const Filters = (props: {
  /** Clears all filters; absent while none is set. */
  readonly onClear?: (() => void) | undefined
  readonly children: ComponentChildren
}) => {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const isFolded = toChildArray(props.children).length > 1
  return (
    <search class={`filters${isFolded ? " filters-folded" : ""}${isOpen ? " filters-open" : ""}`}>
      <button
        type="button"
        class="button button-plain filters-toggle"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <span>Filters</span>
        {props.onClear === undefined ? null : <Badge tone="info">On</Badge>}
        <Icon name="chevron" />
      </button>
      <div class="filters-fields" id={id}>
        {props.children}
      </div>
      {props.onClear === undefined ? null : (
        <Button kind="quiet" onClick={props.onClear}>
          Clear filters
        </Button>
      )}
    </search>
  )
}
