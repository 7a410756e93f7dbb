import { Button } from "../../components/Button.tsx"
import { Copy } from "../../components/Copy.tsx"

/** A newly created link. */
export interface LinkToShare {
  readonly url: string
  /** `payment link` or `checkout page`. */
  readonly what: string
}

/** Shows the URL of a new link or page, to copy or open. */
export const ShareLink = ({ link, onClose }: { readonly link: LinkToShare; readonly onClose: () => void }) => (
  <div class="share">
    <p>Give this address to whoever should pay. It can be paid at again and again, until you close it.</p>
    <p class="share-url">
      <code>{link.url}</code>
    </p>
    <div class="form-actions">
      <Button onClick={onClose}>Done</Button>
      <a class="button button-plain" href={link.url} target="_blank" rel="noreferrer">
        Open the {link.what}
      </a>
      <Copy text={link.url} label="Copy the address" />
    </div>
  </div>
)
