import { isShown, linkedHost } from "./ImageRules.ts"

export interface ProductImageProps {
  readonly url: string
  /** What the image shows; `""` if the text beside it says it already. */
  readonly alt: string
  readonly size?: "small" | "large"
}

/** An image that the service serves; of another host, a link to it. */
export const ProductImage = ({ alt, size = "large", url }: ProductImageProps) => {
  if (isShown(url, location.origin)) {
    return <img class={`product-image product-image-${size}`} src={url} alt={alt} loading="lazy" decoding="async" />
  }
  const host = linkedHost(url)
  if (size === "small" || host === undefined) return <NoImage size={size} />
  return (
    <a class="product-image-link" href={url} target="_blank" rel="noreferrer">
      Image at {host}
    </a>
  )
}

/** Where an image would be. */
export const NoImage = ({ size }: { readonly size: "small" | "large" }) => (
  <span class={`product-image product-image-${size} product-image-none`} aria-hidden="true" />
)
