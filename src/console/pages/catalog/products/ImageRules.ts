/** The API's bound: 4 MiB. */
const maximumImageBytes = 4 * 1024 * 1024

const types: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/webp"])

export const acceptedImages = [...types].join(",")

const megabytes = new Intl.NumberFormat("en", { maximumFractionDigits: 1 })

/** Why a file can't be uploaded; undefined if the upload may be tried. The service checks the bytes themselves. */
export const imageProblem = (file: {
  readonly name: string
  readonly size: number
  readonly type: string
}): string | undefined => {
  if (file.type !== "" && !types.has(file.type)) return `${file.name} is not a JPEG, PNG or WebP image.`
  if (file.size === 0) return `${file.name} is empty.`
  return file.size > maximumImageBytes
    ? `${file.name} has ${megabytes.format(file.size / 1024 / 1024)} MiB; an image may have up to 4.`
    : undefined
}

/** Whether the content security policy lets the pages show an image: only those that the service serves. */
export const isShown = (url: string, origin: string): boolean =>
  URL.canParse(url) && new URL(url).origin === origin && /\/product-images\/[0-9a-f]{64}\.(?:jpg|png|webp)$/.test(url)

/** The host of an external image, to link to it; undefined if the URL is not safe to link. */
export const linkedHost = (url: string): string | undefined => {
  if (!URL.canParse(url)) return undefined
  const { host, protocol } = new URL(url)
  return protocol === "https:" || protocol === "http:" ? host : undefined
}
