import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { useAuthorNames, useKeys } from "../../components/Author.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { actions, Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { NewKey } from "./NewKey.tsx"
import { labelsOf, summaryOf } from "./permissions.ts"

type Key = AnswerOf<"apiKeys", "list">["data"][number]

const Expiry = ({ at }: { readonly at: string | null }) => {
  if (at === null) return <span class="quiet">Never</span>
  return Date.parse(at) <= Date.now() ? <Badge tone="problem">Expired</Badge> : <Time at={at} />
}

const Revoke = ({ id, lastUsedAt, name }: Key) => {
  return (
    <ConfirmButton
      button="Revoke"
      label={`Revoke the key ${name}`}
      small
      title={`Revoke the key ${name}?`}
      confirmLabel="Revoke"
      danger
      action={() => call("apiKeys", "revoke", { path: { id } })}
      onDone={() => toast(`The key ${name} is revoked.`)}
    >
      <p>From then on, requests with this key are refused. That can't be undone: create a new key instead.</p>
      <p>Last used: {lastUsedAt === null ? "never" : <Time at={lastUsedAt} relative />}</p>
    </ConfirmButton>
  )
}

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
