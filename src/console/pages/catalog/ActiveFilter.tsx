import { SelectField } from "../../components/Field.tsx"
import { Filters } from "../../components/Filters.tsx"
import { useUrlState } from "../../state/UrlState.ts"

/** The filter of a list by what is active, inactive, or both, kept in the address. */
export const useActiveFilter = (): {
  readonly shown: string
  readonly query: { readonly active?: boolean }
  readonly show: (shown: string) => void
} => {
  const [{ shown }, change] = useUrlState("shown")
  return {
    shown,
    query: shown === "active" ? { active: true } : shown === "inactive" ? { active: false } : {},
    show: (chosen) => change({ shown: chosen })
  }
}

export const ActiveFilter = ({ active, inactive }: { readonly active: string; readonly inactive: string }) => {
  const { show, shown } = useActiveFilter()
  return (
    <Filters {...(shown === "" ? {} : { onClear: () => show("") })}>
      <SelectField
        name="shown"
        label="Show"
        value={shown}
        onChange={show}
        options={[
          { value: "", label: "All" },
          { value: "active", label: active },
          { value: "inactive", label: inactive }
        ]}
      />
    </Filters>
  )
}
