import type { ComponentChildren } from "preact"
import { toApiError } from "../../api/ApiError.ts"
import { Button } from "../../components/Button.tsx"
import { Filters } from "../../components/Filters.tsx"
import { FilterField } from "../../components/forms/Field.tsx"
import { inWords } from "../../components/forms/Reasons.ts"
import { Empty, PagedTable } from "../../components/Loaded.tsx"
import type { Identified, TableProps } from "../../components/Table.tsx"
import { type PageOf, type PageQuery, usePages, useSubmit } from "../../state/Query.ts"
import { toast } from "../../state/Toasts.ts"
import { useUrlFilters } from "../../state/UrlState.ts"

export interface ActiveListProps<A> extends Omit<TableProps<A>, "items"> {
  /** The list's part of the query key, below the catalog. */
  readonly kind: string
  readonly load: (query: PageQuery & { readonly active?: boolean }, signal: AbortSignal) => Promise<PageOf<A>>
  readonly words: readonly [active: string, inactive: string]
  readonly nothing: readonly [active: string, inactive: string]
  /** The items in a sentence, such as `products`. */
  readonly noun: string
  readonly empty: ComponentChildren
}

/** A list of the catalog, filtered by what is active, inactive, or both; the address keeps the filter. */
export const ActiveList = <A extends Identified>({
  empty,
  kind,
  load,
  nothing: [noneActive, noneInactive],
  noun,
  words: [active, inactive],
  ...table
}: ActiveListProps<A>) => {
  const { field, filters, onClear } = useUrlFilters("shown")
  const { shown } = filters
  const query = shown === "active" || shown === "inactive" ? { active: shown === "active" } : {}
  const list = usePages<A>(`catalog/${kind}?${shown}`, (page, signal) => load({ ...page, ...query }, signal))
  return (
    <>
      <Filters onClear={onClear}>
        <FilterField
          {...field("shown")}
          label="Show"
          options={[
            ["active", active],
            ["inactive", inactive]
          ]}
        />
      </Filters>
      <PagedTable
        {...table}
        list={list}
        empty={
          shown === "" ? (
            empty
          ) : (
            <Empty title={shown === "active" ? noneActive : noneInactive}>Clear the filter to see all {noun}.</Empty>
          )
        }
      />
    </>
  )
}

/** A submission by a button outside a form: shows a failure as a toast, with the request id to quote. */
export const useToastedSubmit = <A,>(action: (idempotencyKey: string) => Promise<A>, onDone: (answer: A) => void) =>
  useSubmit(async (idempotencyKey) => {
    try {
      return await action(idempotencyKey)
    } catch (failure) {
      const { message, requestId } = toApiError(failure)
      toast(`${inWords(message, {})}${requestId === null ? "" : ` Quote ${requestId} if you ask for help.`}`, "problem")
      throw failure
    }
  }, onDone)

/** Deactivates or reactivates something, without confirmation since the same button undoes it. */
export const ActiveButton = (props: {
  readonly isActive: boolean
  /** The button's labels while active and inactive: `Deactivate`, `Activate`. */
  readonly words: readonly [deactivate: string, activate: string]
  /** The object's name, for screen readers. */
  readonly of: string
  readonly set: (active: boolean) => Promise<unknown>
  /** For a page's header, next to larger buttons. */
  readonly isLarge?: boolean
}) => {
  const { isActive, isLarge = false, of } = props
  const { busy, submit } = useToastedSubmit(
    () => props.set(!isActive),
    () => toast(`${of} is ${isActive ? "inactive" : "active"} now`)
  )
  const word = props.words[isActive ? 0 : 1]
  return (
    <Button small={!isLarge} kind={isLarge ? "plain" : "quiet"} busy={busy} label={`${word} ${of}`} onClick={submit}>
      {word}
    </Button>
  )
}
