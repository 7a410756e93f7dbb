import { useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { Button } from "../../components/Button.tsx"
import { TextField } from "../../components/Field.tsx"
import { useWorkspace } from "../../state/Session.ts"

/** The id of a payment, or of its charge or checkout session. */
const idForm = /^(?:pi|ch|py|cs)_[A-Za-z0-9_]{1,250}$/

/** Opens a payment by an id, such as one copied from an order or a log. */
export const FindById = () => {
  const { path } = useWorkspace()
  const [, navigate] = useLocation()
  const [id, setId] = useState("")
  const [isRefused, setRefused] = useState(false)
  const open = (event: Event) => {
    event.preventDefault()
    const written = id.trim()
    if (idForm.test(written)) navigate(path(`/payments/${written}`))
    else setRefused(true)
  }
  return (
    <search>
      <form class="find" onSubmit={open}>
        <TextField
          name="find"
          label="Find by id"
          value={id}
          maxLength={255}
          autocomplete="off"
          onChange={(written) => {
            setId(written)
            setRefused(false)
          }}
          problem={
            isRefused
              ? "Ids of payments begin with pi_, of charges with ch_, of checkout sessions with cs_."
              : undefined
          }
        />
        <Button type="submit">Open</Button>
      </form>
    </search>
  )
}
