import { capitalized } from "../../api/Reading.ts"
import { Checkbox, FieldGroup, RadioGroup } from "../../components/forms/Field.tsx"
import type { Environment } from "../../state/Session.ts"
import { type Role, roleWords } from "./roles.ts"

const environments: ReadonlyArray<Environment> = ["sandbox", "production"]

interface FieldOf<V> {
  readonly name: string
  readonly value: V
  readonly onChange: (value: V) => void
}

export const RoleChoice = <R extends Role>({
  offered,
  ...field
}: FieldOf<R> & { readonly offered: ReadonlyArray<R> }) => (
  <RadioGroup
    {...field}
    label="Role"
    options={offered.map((value) => ({ value, label: capitalized(value), hint: `Can do: ${roleWords[value]}.` }))}
  />
)

export const WorkspaceChoice = ({ name, onChange, value }: FieldOf<ReadonlyArray<Environment>>) => (
  <FieldGroup name={name} label="Workspaces" hint="Which of them the person may enter.">
    <div class="choices">
      {environments.map((environment) => (
        <Checkbox
          key={environment}
          name={environment}
          label={capitalized(environment)}
          value={value.includes(environment)}
          onChange={(isChosen) =>
            onChange(environments.filter((one) => (one === environment ? isChosen : value.includes(one))))
          }
        />
      ))}
    </div>
  </FieldGroup>
)

export const workspacesInWords = (entered: ReadonlyArray<Environment>): string =>
  entered.length === 2 ? "Both" : entered.length === 0 ? "None" : capitalized(entered[0] ?? "sandbox")
