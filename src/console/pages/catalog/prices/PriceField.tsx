import { useEffect, useRef, useState } from "preact/hooks"
import { Link } from "wouter-preact"
import { type Described, Field, TextField } from "../../../components/forms/Field.tsx"
import { ErrorNote } from "../../../components/Notice.tsx"
import { useQuery } from "../../../state/Query.ts"
import { useWorkspace } from "../../../state/Session.ts"
import { type Offer, readOffer, readOffers } from "../Offers.ts"

const another = "another"

const idForm = /^(?:price|plan)_[A-Za-z0-9_]{1,245}$/

/** Chooses one of the prices for sale, listed by product name, or any other price by its id. */
export const PriceField = ({
  chosen,
  onChange,
  ...described
}: Described & {
  /** The chosen price's id; `""` for none. */
  readonly chosen: string
  readonly onChange: (offer: Offer | undefined) => void
}) => {
  const { can, path } = useWorkspace()
  const query = useQuery("catalog/offers", readOffers)
  const [isAnother, setAnother] = useState(false)
  const offers = query.data?.offers ?? []
  // The current price may be inactive, or beyond the end of the truncated list
  const isUnlisted = !isAnother && chosen !== "" && offers.every(({ id }) => id !== chosen)
  const hint =
    query.data !== undefined && offers.length === 0 ? (
      <>
        Nothing is on sale yet.{" "}
        {can("products:write", "products.create") ? <Link href={path("/products/new")}>Create a product</Link> : null}
      </>
    ) : undefined
  return (
    <>
      <Field {...described} hint={hint} required>
        {(field) => (
          <select
            {...field}
            value={isAnother ? another : chosen}
            onChange={(event) => {
              const { value } = event.currentTarget
              setAnother(value === another)
              onChange(offers.find(({ id }) => id === value))
            }}
          >
            <option value="">{query.data === undefined && query.error === undefined ? "Loading…" : "Choose"}</option>
            {offers.map((offer) => (
              <option key={offer.id} value={offer.id}>
                {offer.label}
              </option>
            ))}
            {isUnlisted ? <option value={chosen}>{chosen}</option> : null}
            <option value={another}>Another price, by its id</option>
          </select>
        )}
      </Field>
      {query.error === undefined ? null : <ErrorNote error={query.error} retry={query.reload} />}
      {isAnother ? <PriceById name={`${described.name}.id`} onChange={onChange} /> : null}
    </>
  )
}

const PriceById = ({
  name,
  onChange
}: {
  readonly name: string
  readonly onChange: (offer: Offer | undefined) => void
}) => {
  const [written, setWritten] = useState("")
  const id = written.trim()
  const query = useQuery(idForm.test(id) ? `catalog/offer/${id}` : null, (signal) => readOffer(id, signal))
  const given = useRef(onChange)
  given.current = onChange
  useEffect(() => given.current(query.data), [query.data])
  return (
    <TextField
      name={name}
      label="Id of the price"
      monospace
      value={written}
      onChange={setWritten}
      maxLength={255}
      hint={query.data?.label ?? "It begins with price_."}
      problem={query.error?.message}
    />
  )
}
