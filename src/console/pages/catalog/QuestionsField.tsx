import { fieldsOf } from "../../components/Draft.ts"
import { Checkbox, FieldGroup, SelectField, TextArea, TextField } from "../../components/Field.tsx"
import type { Problems } from "../../components/Reader.ts"
import { AddButton, RemoveButton } from "./ItemsField.tsx"
import { emptyQuestion, keyOf, type QuestionDraft } from "./QuestionDraft.ts"

/** The API's limit. */
const mostQuestions = 3

const types = [
  { value: "text", label: "A text" },
  { value: "numeric", label: "Digits" },
  { value: "dropdown", label: "One of a list" }
] as const

export const QuestionsField = (props: {
  /** The API's name for the array. */
  readonly name: string
  readonly value: ReadonlyArray<QuestionDraft>
  readonly onChange: (questions: ReadonlyArray<QuestionDraft>) => void
  readonly problems: Problems
}) => {
  const { name, onChange, problems, value: questions } = props
  const nextKey = Math.max(-1, ...questions.map(({ listKey }) => listKey)) + 1
  return (
    <>
      {questions.map((question, index) => {
        const field = fieldsOf(question, (change) => onChange(questions.with(index, change(question))), problems)
        const path = `${name}.${index}`
        return (
          <FieldGroup key={question.listKey} label={`Question ${index + 1}`}>
            <div class="field-row">
              <TextField {...field("label", `${path}.label`)} label="What the payer is asked" maxLength={50} />
              <TextField
                {...field("key", `${path}.key`)}
                label="Key of the answer"
                required={false}
                monospace
                maxLength={40}
                placeholder={keyOf(question.label)}
              />
              <SelectField {...field("type", `${path}.type`)} label="Answer" options={types} />
            </div>
            {question.type === "dropdown" ? (
              <TextArea {...field("options", `${path}.options`)} label="Choices, one per line" rows={3} />
            ) : null}
            <Checkbox {...field("isOptional", `${path}.optional`)} label="The payer may leave it empty" />
            <RemoveButton
              label={`Remove question ${index + 1}`}
              onClick={() => onChange(questions.toSpliced(index, 1))}
            />
          </FieldGroup>
        )
      })}
      {questions.length < mostQuestions ? (
        <AddButton onClick={() => onChange([...questions, emptyQuestion(nextKey)])}>
          Ask a question of your own
        </AddButton>
      ) : null}
    </>
  )
}
