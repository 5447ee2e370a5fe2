/** Form fields for the limits, models and tags of an API key. An empty field is no rule. */
import type { RequestError } from '../state/api-error.ts'
import { type KeyRuleTexts, type LimitTexts, limitFields, limitNames, paramOf } from '../state/key-rule-texts.ts'
import { TextField } from './field.tsx'

type LimitFieldsProps = {
  readonly texts: LimitTexts
  readonly onTexts: (texts: LimitTexts) => void
  readonly failure: RequestError | null
}

export function LimitFields({ texts, onTexts, failure }: LimitFieldsProps) {
  return (
    <>
      {limitNames.map(name => (
        <TextField
          key={name}
          label={limitFields[name]}
          type="number"
          min="0"
          step={name.endsWith('_usd') ? 'any' : '1'}
          param={paramOf(name)}
          value={texts[name]}
          onText={text => onTexts({ ...texts, [name]: text })}
          failure={failure}
        />
      ))}
    </>
  )
}

type KeyRulesProps = {
  readonly texts: KeyRuleTexts
  readonly onTexts: (texts: KeyRuleTexts) => void
  readonly failure: RequestError | null
}

export function KeyRuleFields({ texts, onTexts, failure }: KeyRulesProps) {
  const field = (name: 'models' | 'tags') => ({
    value: texts[name],
    onText: (text: string) => onTexts({ ...texts, [name]: text }),
    failure,
  })
  return (
    <>
      <LimitFields texts={texts} onTexts={limits => onTexts({ ...texts, ...limits })} failure={failure} />
      <TextField label="Models" hint="openai/gpt-5.5, anthropic/*. Empty: all." param="models" {...field('models')} />
      <TextField label="Tags" hint="team=search, env=prod" param="tags" {...field('tags')} />
    </>
  )
}
