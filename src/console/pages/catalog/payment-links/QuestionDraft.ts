import type { AnswerOf } from "../../../api/Types.ts"
import type { Reader } from "../../../components/forms/Reader.ts"

/** The organization's questions to payers, as edited in a form. */

type Question = AnswerOf<"checkoutPages", "get">["collect"]["customFields"][number]

export interface QuestionDraft {
  /** The list key, stable while other questions are added or removed. */
  readonly listKey: number
  readonly label: string
  /** Identifies the answer; `""` to derive it from the label. */
  readonly key: string
  readonly type: Question["type"]
  readonly isOptional: boolean
  /** A dropdown's options, one per line. */
  readonly options: string
  /** A dropdown's previous options. A line that is kept also keeps its value, which identifies answers. */
  readonly offered?: Question["options"]
}

export const noQuestions: ReadonlyArray<QuestionDraft> = []

export const emptyQuestion = (listKey: number): QuestionDraft => ({
  listKey,
  label: "",
  key: "",
  type: "text",
  isOptional: false,
  options: ""
})

export const draftOfQuestion = (question: Question, listKey: number): QuestionDraft => ({
  listKey,
  label: question.label,
  key: question.key,
  type: question.type,
  isOptional: question.optional === true,
  options: (question.options ?? []).map(({ label }) => label).join("\n"),
  ...(question.options === undefined ? {} : { offered: question.options })
})

/** As the provider requires for keys and values: `Ground or whole?` becomes `groundorwhole`. */
export const keyOf = (words: string): string =>
  words
    .normalize("NFD")
    .replaceAll(/[^a-zA-Z0-9]/g, "")
    .toLowerCase()
    .slice(0, 40)

const linesOf = (text: string): ReadonlyArray<string> =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")

/** A dropdown's options. Lines with the same letters and digits, or with none, get their number appended. */
const optionsOf = (text: string, offered: Question["options"] = []): NonNullable<Question["options"]> => {
  const labels = linesOf(text)
  const kept = offered.filter(({ label }) => labels.includes(label))
  const taken = new Set(kept.map(({ value }) => value))
  return labels.map((label, index) => {
    const known = kept.find((option) => option.label === label && labels.indexOf(label) === index)
    if (known !== undefined) return known
    const own = keyOf(label)
    const value = own === "" || taken.has(own) ? `${own.slice(0, 30)}${index + 1}` : own
    taken.add(value)
    return { label, value }
  })
}

export const questionsIn = (reader: Reader, questions: ReadonlyArray<QuestionDraft>): ReadonlyArray<Question> =>
  questions.map(({ isOptional, key, label, offered, options, type }, index) => {
    const path = `collect.customFields.${index}`
    const name = key.trim() === "" ? keyOf(label) : key.trim()
    if (label.trim() === "") reader.problems[`${path}.label`] = "Write the question."
    else if (name === "") reader.problems[`${path}.key`] = "Write a key of letters and digits."
    if (type === "dropdown" && linesOf(options).length === 0) {
      reader.problems[`${path}.options`] = "Write the choices, one per line."
    }
    return {
      key: name,
      label: label.trim(),
      type,
      ...(isOptional ? { optional: true } : {}),
      ...(type === "dropdown" ? { options: optionsOf(options, offered) } : {})
    }
  })
