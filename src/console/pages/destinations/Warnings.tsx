import { Notice } from "../../components/Notice.tsx"

/** The service's warnings about events that a destination or its test event will never show. */
export const Warnings = ({ of: { warnings } }: { readonly of: { readonly warnings: ReadonlyArray<string> } }) =>
  warnings.length === 0 ? null : (
    <Notice tone="warning" title="Some events never arrive">
      {warnings.map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
    </Notice>
  )
