import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { actions, Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery, useSubmit } from "../../state/Query.ts"
import { signOut, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"

type SessionShown = AnswerOf<"session", "list">["data"][number]

const key = "person/sessions"

const EndOne = ({ session }: { readonly session: SessionShown }) => {
  const { busy, error, submit } = useSubmit(
    () => call("session", "endOne", { path: { id: session.id } }),
    () => toast("The session has ended.")
  )
  return (
    <>
      <Button small busy={busy} label={`End the session of ${session.client ?? "an unknown browser"}`} onClick={submit}>
        End
      </Button>
      {error === undefined ? null : <span role="alert">{error.message}</span>}
    </>
  )
}

export default function Sessions() {
  const { person } = useSession()
  const sessions = useQuery(key, (signal) => call("session", "list", {}, { signal }))
  return (
    <Page
      title="Your sessions"
      lead={`Where ${person.email} is signed in. A session ends 12 hours after its last use, and after 30 days at the latest.`}
      actions={
        <ConfirmButton
          button="Sign out everywhere"
          kind="danger"
          title="Sign out everywhere?"
          danger
          action={() => signOut(true)}
        >
          <p>Every session ends, including this one, and open sign-in links no longer work.</p>
        </ConfirmButton>
      }
    >
      <Loaded query={sessions}>
        {({ data }) => (
          <Table
            caption="Your sessions, most recently used first"
            items={data}
            columns={[
              {
                head: "Browser",
                cell: ({ client, current }) => (
                  <span class="row">
                    {client ?? "Unknown browser"}
                    {current ? <Badge tone="ok">This one</Badge> : null}
                  </span>
                )
              },
              { head: "Last used", cell: ({ lastUsedAt }) => <Time at={lastUsedAt} relative /> },
              { head: "Signed in", cell: ({ createdAt }) => <Time at={createdAt} /> },
              { head: "Ends", cell: ({ expiresAt }) => <Time at={expiresAt} /> },
              { ...actions, cell: (session) => (session.current ? null : <EndOne session={session} />) }
            ]}
          />
        )}
      </Loaded>
    </Page>
  )
}
