import type { ComponentChildren, ComponentType } from "preact"
import { useState } from "preact/hooks"
import { OnOffBadge } from "../../../components/Badge.tsx"
import { Button } from "../../../components/Button.tsx"
import { Copy } from "../../../components/Copy.tsx"
import { Dialog } from "../../../components/Dialog.tsx"
import type { Column, Identified } from "../../../components/Table.tsx"
import { useWorkspace } from "../../../state/Session.ts"
import { ActiveButton, ActiveList, type ActiveListProps } from "../ActiveList.tsx"

interface AddressListProps<A> extends Pick<ActiveListProps<A>, "caption" | "empty" | "kind" | "load"> {
  /** The word for one item in a sentence. */
  readonly noun: string
  /** Two columns before the status, the others after it. */
  readonly columns: readonly [first: Column<A>, second: Column<A>, ...others: ReadonlyArray<Column<A>>]
  readonly isOpen: (item: A) => boolean
  readonly urlOf: (item: A) => string | undefined
  readonly nameOf: (item: A) => string
  readonly open: (item: A, active: boolean) => Promise<unknown>
  readonly actions?: (item: A) => ComponentChildren
}

export const AddressList = <A extends Identified>({
  actions,
  columns: [first, second, ...others],
  isOpen,
  nameOf,
  noun,
  open,
  urlOf,
  ...list
}: AddressListProps<A>) => {
  const { can } = useWorkspace()
  return (
    <ActiveList
      {...list}
      words={["Open", "Closed"]}
      nothing={[`No ${noun} is open`, `No ${noun} is closed`]}
      noun={`${noun}s`}
      columns={[
        first,
        second,
        { head: "Status", cell: (item) => <OnOffBadge isOn={isOpen(item)} words={["Open", "Closed"]} /> },
        ...others,
        {
          head: "Address",
          hidden: true,
          cell: (item) => {
            const url = urlOf(item)
            return url === undefined ? "–" : <Copy text={url} label="Copy link" />
          }
        },
        can("payments:write") && {
          head: "Actions",
          hidden: true,
          cell: (item) => (
            <span class="row-actions">
              <ActiveButton
                isActive={isOpen(item)}
                words={["Close", "Open"]}
                of={nameOf(item)}
                set={(active) => open(item, active)}
              />
              {actions?.(item)}
            </span>
          )
        }
      ]}
    />
  )
}

export interface AddressFormProps {
  readonly onClose: () => void
  readonly onCreated: (url: string) => void
}

export const NewAddress = (props: {
  /** `payment link` or `checkout page`. */
  readonly what: string
  readonly form: ComponentType<AddressFormProps>
  readonly onClose: () => void
}) => {
  const [url, setUrl] = useState<string | undefined>(undefined)
  return (
    <Dialog title={`New ${props.what}`} onClose={props.onClose}>
      {url === undefined ? (
        <props.form onClose={props.onClose} onCreated={setUrl} />
      ) : (
        <div class="share">
          <p>Give this address to whoever should pay. It can be used again and again, until you close it.</p>
          <p class="share-url">
            <code>{url}</code>
          </p>
          <div class="form-actions">
            <Button onClick={props.onClose}>Done</Button>
            <a class="button button-plain" href={url} target="_blank" rel="noreferrer">
              Open the {props.what}
            </a>
            <Copy text={url} label="Copy the address" />
          </div>
        </div>
      )}
    </Dialog>
  )
}
