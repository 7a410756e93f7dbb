import { useState } from "preact/hooks"
import { servicePath } from "../../api/Base.ts"
import { type AnswerOf, call } from "../../api/Call.ts"
import { useAuthorNames, useKeys } from "../../components/Author.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Code, Secret } from "../../components/Code.tsx"
import { ConfirmButton, Dialog, FormDialog } from "../../components/Dialog.tsx"
import { useFields } from "../../components/forms/Draft.ts"
import { FieldGroup, SelectField, TextField } from "../../components/forms/Field.tsx"
import { filled } from "../../components/forms/Reader.ts"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Page } from "../../components/Page.tsx"
import { actions, Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useSubmit } from "../../state/Query.ts"
import { useSession, useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { firstRequest, type KeyPermission, labelsOf, permissionRows, summaryOf } from "./permissions.ts"

type CreatedKey = AnswerOf<"apiKeys", "create">

const presets: ReadonlyArray<{ readonly label: string; readonly permissions: ReadonlyArray<KeyPermission> }> = [
  { label: "a shop", permissions: ["payments:read", "payments:write", "products:read"] },
  {
    label: "reporting",
    permissions: permissionRows
      .map(({ permission }) => permission)
      .filter((permission) => permission.endsWith(":read") && !/^(?:audit-log|customers):/.test(permission))
  }
]

const day = 86_400_000

const lifetimes = [
  { value: "", label: "Never" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "date", label: "On a day that I choose" }
] as const

type Lifetime = (typeof lifetimes)[number]["value"]

const expiryOf = (lifetime: Lifetime, date: string): string | undefined => {
  if (lifetime === "") return undefined
  if (lifetime !== "date") return new Date(Date.now() + Number(lifetime) * day).toISOString()
  const end = new Date(`${date}T23:59:59`)
  // The API reports an invalid date
  return Number.isNaN(end.getTime()) ? date : end.toISOString()
}

const PermissionTable = (props: {
  readonly chosen: ReadonlySet<KeyPermission>
  readonly onChange: (chosen: ReadonlySet<KeyPermission>) => void
}) => {
  const { can } = useWorkspace()
  const toggle = (permission: KeyPermission) => {
    const next = new Set(props.chosen)
    if (!next.delete(permission)) next.add(permission)
    props.onChange(next)
  }
  return (
    <div class="permissions">
      {permissionRows
        .filter(({ permission }) => can(permission))
        .map(({ label, permission, words }) => (
          <label key={permission} class="permission">
            <input type="checkbox" checked={props.chosen.has(permission)} onChange={() => toggle(permission)} />
            <span class="permission-name">
              {label}
              <code>{permission}</code>
            </span>
            <span class="permission-words">{words}</span>
          </label>
        ))}
    </div>
  )
}

const curlWith = ({ key, permissions }: CreatedKey, organizationId: string): string =>
  `curl ${location.origin}${servicePath}${firstRequest(permissions).replace(":organizationId", organizationId)} \\
  --header 'x-api-key: ${key}'`

const ShowKey = ({ created, onClose }: { readonly created: CreatedKey; readonly onClose: () => void }) => {
  const { organization } = useSession()
  return (
    <Dialog title={`The key ${created.name}`} keep onClose={onClose}>
      <Notice tone="warning" title="This is the only time that the key is shown">
        <p>
          Store it where your program reads its secrets, not in its code. It is for servers only: whoever has it can do
          everything that it permits.
        </p>
      </Notice>
      <Secret value={created.key} copyLabel="Copy the key" />
      <Code text={curlWith(created, organization.id)} language="sh" label="A first request with this key" />
    </Dialog>
  )
}

const noPermissions: ReadonlySet<KeyPermission> = new Set()
const emptyKey = { name: "", permissions: noPermissions, lifetime: "" as Lifetime, date: "" }

const NewKey = ({ onClose }: { readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const { draft, field } = useFields(emptyKey)
  const [created, setCreated] = useState<CreatedKey | undefined>(undefined)
  const submission = useSubmit(() => {
    const { date, lifetime, name, permissions } = draft
    const mode = environment === "production" ? "live" : "test"
    const expiry = filled({ expiresAt: expiryOf(lifetime, date) })
    return call("apiKeys", "create", { payload: { name, permissions: [...permissions], mode, ...expiry } })
  }, setCreated)
  if (created !== undefined) return <ShowKey created={created} onClose={onClose} />
  const { onChange: choose } = field("permissions")
  const isDated = draft.lifetime === "date"
  return (
    <FormDialog
      title={environment === "sandbox" ? "New sandbox key" : "New production key"}
      submission={submission}
      submit="Create the key"
      onClose={onClose}
    >
      <TextField
        {...field("name")}
        label="Name"
        hint="What uses it, such as the shop's server."
        maxLength={100}
        required
      />
      <FieldGroup
        name="permissions"
        label="What the key may do"
        hint="Give no more than the program needs. A key can't be changed later."
      >
        <div class="row">
          <span class="quiet">Choose what is needed for</span>
          {presets.map(({ label, permissions }) => (
            <Button key={label} small onClick={() => choose(new Set(permissions))}>
              {label}
            </Button>
          ))}
        </div>
        <PermissionTable chosen={draft.permissions} onChange={choose} />
      </FieldGroup>
      <SelectField {...field("lifetime", isDated ? "lifetime" : "expiresAt")} label="Expires" options={lifetimes} />
      {isDated ? <TextField {...field("date", "expiresAt")} label="Last day" type="date" required /> : null}
    </FormDialog>
  )
}

type Key = AnswerOf<"apiKeys", "list">["data"][number]

const Expiry = ({ at }: { readonly at: string | null }) => {
  if (at === null) return <span class="quiet">Never</span>
  return Date.parse(at) <= Date.now() ? <Badge tone="problem">Expired</Badge> : <Time at={at} />
}

const Revoke = ({ id, lastUsedAt, name }: Key) => (
  <ConfirmButton
    button="Revoke"
    label={`Revoke the key ${name}`}
    small
    title={`Revoke the key ${name}?`}
    danger
    action={() => call("apiKeys", "revoke", { path: { id } })}
    onDone={() => toast(`The key ${name} is revoked.`)}
  >
    <p>From then on, requests with this key are refused. That can't be undone: create a new key instead.</p>
    <p>Last used: {lastUsedAt === null ? "never" : <Time at={lastUsedAt} relative />}</p>
  </ConfirmButton>
)

const KeyTable = ({ keys }: { readonly keys: ReadonlyArray<Key> }) => {
  const authorName = useAuthorNames()
  return (
    <Table
      caption="API keys of this workspace"
      items={keys}
      columns={[
        { head: "Name", cell: ({ name }) => <strong>{name}</strong> },
        {
          head: "Key",
          cell: ({ lastFour, prefix }) => (
            <code>
              {prefix}…{lastFour}
            </code>
          )
        },
        {
          head: "May",
          cell: ({ permissions }) => <span title={labelsOf(permissions).join(", ")}>{summaryOf(permissions)}</span>
        },
        {
          head: "Last used",
          cell: ({ lastUsedAt: at }) => (at === null ? <span class="quiet">Never</span> : <Time at={at} relative />)
        },
        { head: "Expires", cell: ({ expiresAt }) => <Expiry at={expiresAt} /> },
        {
          head: "Created",
          cell: ({ createdAt, createdBy }) => (
            <>
              <Time at={createdAt} />
              <br />
              <span class="quiet">{authorName(createdBy)}</span>
            </>
          )
        },
        { ...actions, cell: (key) => <Revoke {...key} /> }
      ]}
    />
  )
}

export default function Keys() {
  const { organization } = useSession()
  const [creating, setCreating] = useState(false)
  const keys = useKeys()
  if (organization.role === "viewer") {
    return (
      <Page title="API keys">
        <Empty title="Viewers don't see API keys">
          <p>Developers, admins and owners create and revoke them.</p>
        </Empty>
      </Page>
    )
  }
  const create = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      Create a key
    </Button>
  )
  return (
    <Page
      title="API keys"
      lead="Programs use the API with a key. A key belongs to this workspace and can do only what it was given."
      actions={create}
    >
      <Loaded query={keys}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There is no key yet" action={create}>
              <p>Create one for each program, so that you can revoke one without disturbing the others.</p>
            </Empty>
          ) : (
            <KeyTable keys={data} />
          )
        }
      </Loaded>
      {creating && <NewKey onClose={() => setCreating(false)} />}
    </Page>
  )
}
