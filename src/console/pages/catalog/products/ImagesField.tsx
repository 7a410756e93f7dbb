import { useRef, useState } from "preact/hooks"
import { type ApiError, toApiError } from "../../../api/ApiError.ts"
import { call } from "../../../api/Call.ts"
import { Button } from "../../../components/Button.tsx"
import { FieldGroup, Reason } from "../../../components/forms/Field.tsx"
import { useRefusal } from "../../../components/forms/Form.tsx"
import { ErrorNote } from "../../../components/Notice.tsx"
import { acceptedImages, imageProblem } from "./ImageRules.ts"
import { ProductImage } from "./ProductImage.tsx"

const upload = async (file: File): Promise<string> => {
  const payload = new FormData()
  payload.set("file", file)
  const { url } = await call("productImages", "upload", { payload })
  return url
}

interface ImagesFieldProps {
  readonly name: string
  readonly label: string
  readonly images: ReadonlyArray<string>
  /** Receives an updater instead of the images, so that a slow upload does not undo changes made meanwhile. */
  readonly onChange: (change: (images: ReadonlyArray<string>) => ReadonlyArray<string>) => void
  readonly most: number
}

/** Checks chosen images, and uploads one after the other. */
const useUploads = ({ images, most, onChange }: Pick<ImagesFieldProps, "images" | "most" | "onChange">) => {
  const [uploading, setUploading] = useState(0)
  const [problems, setProblems] = useState<ReadonlyArray<string>>([])
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const left = most - images.length - uploading

  const add = async (chosen: ReadonlyArray<File>) => {
    const refused = chosen.flatMap((file) => imageProblem(file) ?? [])
    const fine = chosen.filter((file) => imageProblem(file) === undefined)
    const taken = fine.slice(0, left)
    setProblems(
      taken.length < fine.length
        ? [...refused, `There can be ${most} images; ${fine.length - taken.length} more were chosen.`]
        : refused
    )
    setError(undefined)
    setUploading((count) => count + taken.length)
    // One at a time: this keeps the images in order, and eight uploads do not share the connection
    for (const file of taken) {
      try {
        const url = await upload(file)
        // The same bytes get the same URL
        onChange((before) => (before.includes(url) ? before : [...before, url]))
      } catch (failure) {
        setError(toApiError(failure))
      } finally {
        setUploading((count) => count - 1)
      }
    }
  }

  return { add, error, left, problems, uploading }
}

/** The uploaded images, each with its buttons. */
const Images = ({ images, onChange }: Pick<ImagesFieldProps, "images" | "onChange">) => (
  <ul class="images">
    {images.map((url, index) => (
      <li key={url}>
        <ProductImage url={url} alt={`Image ${index + 1}`} />
        <span class="images-actions">
          {index === 0 ? null : (
            <Button
              small
              kind="quiet"
              label={`Show image ${index + 1} first`}
              onClick={() => onChange((before) => [url, ...before.filter((other) => other !== url)])}
            >
              First
            </Button>
          )}
          <Button
            small
            kind="quiet"
            label={`Remove image ${index + 1}`}
            onClick={() => onChange((before) => before.filter((other) => other !== url))}
          >
            Remove
          </Button>
        </span>
      </li>
    ))}
  </ul>
)

/** Uploads images as soon as they are chosen: checks each one first, and shows it once uploaded. */
export const ImagesField = ({ label, name, ...field }: ImagesFieldProps) => {
  const { images, most } = field
  const input = useRef<HTMLInputElement>(null)
  const refusal = useRefusal(name, label)
  const { add, error, left, problems, uploading } = useUploads(field)
  const reasons = refusal === undefined ? problems : [refusal, ...problems]
  return (
    <FieldGroup
      label={label}
      hint={`JPEG, PNG or WebP, up to 4 MiB${most === 1 ? "" : ` each; up to ${most} images`}. Anyone who knows its address can see an image.`}
    >
      {images.length === 0 ? null : <Images {...field} />}
      <p role="status" class="images-progress">
        {uploading === 0 ? "" : `Uploading ${uploading === 1 ? "an image" : `${uploading} images`}…`}
      </p>
      {reasons.map((reason) => (
        <Reason key={reason} role="alert" text={reason} />
      ))}
      {error === undefined ? null : <ErrorNote error={error} />}
      <input
        ref={input}
        hidden
        type="file"
        name={name}
        accept={acceptedImages}
        multiple={most > 1}
        onChange={(event) => {
          const chosen = [...(event.currentTarget.files ?? [])]
          // Lets the same file be chosen again
          event.currentTarget.value = ""
          void add(chosen)
        }}
      />
      {left > 0 ? (
        <Button small busy={uploading > 0} onClick={() => input.current?.click()}>
          {most === 1 ? "Choose an image" : "Add images"}
        </Button>
      ) : null}
    </FieldGroup>
  )
}
