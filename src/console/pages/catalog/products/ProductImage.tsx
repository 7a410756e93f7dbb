import { isShown, linkedHost } from "./ImageRules.ts"

export const ProductImage = ({
  alt,
  size = "large",
  url
}: {
  readonly url: string
  /** The image's alternative text; `""` if adjacent text already says the same. */
  readonly alt: string
  readonly size?: "small" | "large"
}) => {
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

export const NoImage = ({ size }: { readonly size: "small" | "large" }) => (
  <span class={`product-image product-image-${size} product-image-none`} aria-hidden="true" />
)
