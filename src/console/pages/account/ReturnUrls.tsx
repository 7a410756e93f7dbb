import { type AnswerOf, call } from "../../api/Call.ts"
import { useFields } from "../../components/Draft.ts"
import { TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Facts, Section } from "../../components/Page.tsx"
import { useQuery, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"

type Record = AnswerOf<"returnUrls", "get">

const operators = <span class="quiet">The operator's page</span>

const Editor = ({ record }: { readonly record: Record }) => {
  const { draft, field } = useFields({ successUrl: record.successUrl ?? "", cancelUrl: record.cancelUrl ?? "" })
  const submission = useSubmit(
    () => {
      const payload = { successUrl: draft.successUrl.trim() || null, cancelUrl: draft.cancelUrl.trim() || null }
      return call("returnUrls", "set", { payload })
    },
    () => toast("The return pages are saved.")
  )
  return (
    <Form submission={submission} submit="Save">
      <TextField
        {...field("successUrl")}
        label="After payment"
        hint="Where payers come back to once they have paid. Empty: the operator's page."
        type="url"
        required={false}
      />
      <TextField
        {...field("cancelUrl")}
        label="Without payment"
        hint="Where payers come back to if they leave without paying. Empty: the operator's page."
        type="url"
        required={false}
      />
    </Form>
  )
}

export const ReturnUrls = () => {
  const { mayManageOrganization } = useWorkspace()
  const record = useQuery("return-urls", (signal) => call("returnUrls", "get", {}, { signal }))
  return (
    <Section
      title="Return pages"
      lead="Where payers go from checkout. A page confirms nothing, since whoever knows its address can open it: rely on the events."
    >
      <Loaded query={record} lines={2}>
        {(answer) =>
          mayManageOrganization ? (
            <Editor key={answer.updatedAt ?? ""} record={answer} />
          ) : (
            <Facts
              items={[
                ["After payment", answer.successUrl ?? operators],
                ["Without payment", answer.cancelUrl ?? operators]
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  )
}
