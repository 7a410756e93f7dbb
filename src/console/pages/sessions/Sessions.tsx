import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useQuery, useSubmit } from "../../state/Query.ts"
import { signOut, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"

type SessionShown = AnswerOf<"session", "list">["data"][number]

const key = "person/sessions"

const EndOne = ({ session }: { readonly session: SessionShown }) => {
  const { busy, error, submit } = useSubmit(
    () => call("session", "endOne", { path: { id: session.id } }),
    () => {
      invalidate(key)
      toast("The session has ended.")
    }
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

/** The person's sessions, to end one or all. */
export default function Sessions() {
  const { person } = useSession()
  const [everywhere, setEverywhere] = useState(false)
  const sessions = useQuery(key, (signal) => call("session", "list", {}, { signal }))
  const { busy, error, submit } = useSubmit(() => signOut(true))
  return (
    <Page
      title="Your sessions"
      lead={`Where ${person.email} is signed in. A session ends 12 hours after its last use, and after 30 days at the latest.`}
      actions={
        <Button kind="danger" onClick={() => setEverywhere(true)}>
          Sign out everywhere
        </Button>
      }
    >
      <Loaded query={sessions}>
        {({ data }) => (
          <Table
            caption="Your sessions, most recently used first"
            head={["Browser", "Last used", "Signed in", "Ends", { label: "Actions", hidden: true, align: "end" }]}
            rows={data.map((session) => ({
              key: session.id,
              cells: [
                <span key="client" class="row">
                  {session.client ?? "Unknown browser"}
                  {session.current ? <Badge tone="ok">This one</Badge> : null}
                </span>,
                <Time key="used" at={session.lastUsedAt} relative />,
                <Time key="created" at={session.createdAt} />,
                <Time key="ends" at={session.expiresAt} />,
                session.current ? null : <EndOne key="end" session={session} />
              ]
            }))}
          />
        )}
      </Loaded>
      <Confirm
        title="Sign out everywhere?"
        open={everywhere}
        onClose={() => setEverywhere(false)}
        onConfirm={submit}
        confirmLabel="Sign out everywhere"
        danger
        busy={busy}
        error={error}
      >
        <p>Every session ends, this one too, and sign-in links that are open no longer work.</p>
      </Confirm>
    </Page>
  )
}
