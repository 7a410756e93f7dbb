import { documentedErrors, snakeCase } from "../errors/Errors.ts"

/** The links from errors to their documentation, which the `Link` header of each error has. */

export const errorReferencePath = "/docs/errors"

/** The parts of an error that determine its place in the documentation. */
interface CodeAndStatus {
  readonly code: string
  readonly status: number
}

const isOpen = (code: string): boolean => code.includes("<")

const placeOf = ({ code, status }: CodeAndStatus): string => `${status} ${code}`

const anchors: ReadonlyMap<string, string> = new Map(
  documentedErrors.map(({ documentation, tag }) => [
    isOpen(documentation.code) ? `${documentation.status}` : placeOf(documentation),
    isOpen(documentation.code) ? snakeCase(tag) : documentation.code
  ])
)

/** Its code; the provider's own are `provider_request_refused` (422) or `provider_payment_refused` (402). */
export const anchorOf = (error: CodeAndStatus): string =>
  anchors.get(placeOf(error)) ?? anchors.get(`${error.status}`) ?? error.code

export const errorLink = (error: CodeAndStatus): string => `<${errorReferencePath}#${anchorOf(error)}>; rel="help"`
