import { Notice } from "../../components/Notice.tsx"

/** What a destination or its test event will never show, as the service says it. */
export const Warnings = ({ of: { warnings } }: { readonly of: { readonly warnings: ReadonlyArray<string> } }) =>
  warnings.length === 0 ? null : (
    <Notice tone="warning" title="Some events never arrive">
      {warnings.map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
    </Notice>
  )
