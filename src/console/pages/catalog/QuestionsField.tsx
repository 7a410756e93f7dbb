import { Button } from "../../components/Button.tsx"
import { Checkbox, FieldGroup, SelectField, TextArea, TextField } from "../../components/Field.tsx"
import type { Problems } from "./PriceDraft.ts"
import { emptyQuestion, keyOf, type QuestionDraft } from "./QuestionDraft.ts"

export interface QuestionsFieldProps {
  readonly questions: ReadonlyArray<QuestionDraft>
  readonly onChange: (questions: ReadonlyArray<QuestionDraft>) => void
  readonly problems: Problems
}

/** The API's limit. */
const mostQuestions = 3

const types = [
  { value: "text", label: "A text" },
  { value: "numeric", label: "Digits" },
  { value: "dropdown", label: "One of a list" }
] as const

/** The organization's own questions, which the provider's page asks the payer. */
export const QuestionsField = ({ onChange, problems, questions }: QuestionsFieldProps) => {
  const change = (index: number, changed: Partial<QuestionDraft>) =>
    onChange(questions.map((question, at) => (at === index ? { ...question, ...changed } : question)))
  return (
    <>
      {questions.map((question, index) => {
        const name = `collect.customFields.${index}`
        return (
          <FieldGroup key={question.listKey} label={`Question ${index + 1}`}>
            <div class="field-row">
              <TextField
                name={`${name}.label`}
                label="What the payer is asked"
                maxLength={50}
                value={question.label}
                onChange={(label) => change(index, { label })}
                problem={problems[`${name}.label`]}
              />
              <TextField
                name={`${name}.key`}
                label="Key of the answer"
                required={false}
                monospace
                maxLength={40}
                placeholder={keyOf(question.label)}
                value={question.key}
                onChange={(key) => change(index, { key })}
                problem={problems[`${name}.key`]}
              />
              <SelectField
                name={`${name}.type`}
                label="Answer"
                value={question.type}
                options={types}
                onChange={(type) => change(index, { type })}
              />
            </div>
            {question.type === "dropdown" ? (
              <TextArea
                name={`${name}.options`}
                label="To choose from, one a line"
                rows={3}
                value={question.options}
                onChange={(options) => change(index, { options })}
                problem={problems[`${name}.options`]}
              />
            ) : null}
            <Checkbox
              name={`${name}.optional`}
              label="The payer may leave it empty"
              checked={question.isOptional}
              onChange={(isOptional) => change(index, { isOptional })}
            />
            <p>
              <Button
                small
                kind="quiet"
                label={`Remove question ${index + 1}`}
                onClick={() => onChange(questions.filter((_, at) => at !== index))}
              >
                Remove
              </Button>
            </p>
          </FieldGroup>
        )
      })}
      {questions.length < mostQuestions ? (
        <p>
          <Button
            small
            onClick={() =>
              onChange([...questions, emptyQuestion(Math.max(-1, ...questions.map(({ listKey }) => listKey)) + 1)])
            }
          >
            Ask a question of your own
          </Button>
        </p>
      ) : null}
    </>
  )
}
