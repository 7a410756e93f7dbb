/** Where images are served, below the service's public URL. */
export const imagesPath = "/product-images"

/** The file name of an image: the hash of its bytes, and its format. */
const file = "[0-9a-f]{64}\\.(?:jpg|png|webp)"

/** What the URLs of images have in common, wherever the service is reached. */
export const imageForm = new RegExp(`^https?://[^/?#@]+(?:/[^?#]*)?${imagesPath}/${file}$`)

/** Whether a URL has the form of those that an upload answers, wherever the service is reached. */
export const hasImageForm = (url: string): boolean => imageForm.test(url)

/** Whether a URL is one that an upload answers, of a service that is reached at `publicUrl`. */
export const isOwnImage =
  ({ plainHttp, publicUrl }: { readonly publicUrl: string; readonly plainHttp: boolean }) =>
  (url: string): boolean =>
    url.startsWith(`${publicUrl}${imagesPath}/`) && hasImageForm(url) && (plainHttp || url.startsWith("https:"))
