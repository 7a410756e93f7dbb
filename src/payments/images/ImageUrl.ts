export const imagesPath = "/product-images"

const file = "[0-9a-f]{64}\\.(?:jpg|png|webp)"

export const imageForm = new RegExp(`^https?://[^?#@]+${imagesPath}/${file}$`)

/** Whether a URL has the form that an upload returns, at any public URL of the service. */
export const hasImageForm = (url: string): boolean => imageForm.test(url)

/** Whether a URL is one that an upload to the service at `publicUrl` returns. */
export const isOwnImage =
  ({ plainHttp, publicUrl }: { readonly publicUrl: string; readonly plainHttp: boolean }) =>
  (url: string): boolean =>
    url.startsWith(`${publicUrl}${imagesPath}/`) && hasImageForm(url) && (plainHttp || url.startsWith("https:"))
