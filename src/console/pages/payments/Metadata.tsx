import { pairsAt } from "../../api/Reading.ts"

export const Metadata = ({ of }: { readonly of: unknown }) => {
  const pairs = pairsAt(of, "metadata")
  return pairs.length === 0 ? null : (
    <details class="metadata">
      <summary>
        Metadata: {pairs.length} {pairs.length === 1 ? "pair" : "pairs"}
      </summary>
      <dl>
        {pairs.map(([key, value]) => (
          <div key={key}>
            <dt>
              <code>{key}</code>
            </dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  )
}
