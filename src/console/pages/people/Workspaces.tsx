import { Checkbox, FieldGroup } from "../../components/Field.tsx"
import type { Environment } from "../../state/Session.ts"

const names = { sandbox: "Sandbox", production: "Production" } as const
const environments: ReadonlyArray<Environment> = ["sandbox", "production"]

/** Selects the workspaces that a developer or viewer may enter. */
export const WorkspaceChoice = (props: {
  readonly chosen: ReadonlyArray<Environment>
  readonly onChange: (chosen: ReadonlyArray<Environment>) => void
}) => (
  <FieldGroup label="Workspaces" hint="Which of them the person may enter.">
    <div class="choices">
      {environments.map((environment) => (
        <Checkbox
          key={environment}
          name="environments"
          label={names[environment]}
          checked={props.chosen.includes(environment)}
          onChange={(checked) =>
            props.onChange(environments.filter((one) => (one === environment ? checked : props.chosen.includes(one))))
          }
        />
      ))}
    </div>
  </FieldGroup>
)

export const workspacesInWords = (entered: ReadonlyArray<Environment>): string =>
  entered.length === 2 ? "Both" : entered.length === 0 ? "None" : names[entered[0] ?? "sandbox"]
